"""Write the seeds of fuzzing: small inputs of each reader, made from the repository's own models.

    python tests/fuzz/seeds.py FOLDER        FOLDER/archive/..., FOLDER/elf/..., a folder per reader

Texts are cut to the lines that readers look at. Objects are linked again, without code: objects of
packages have 300 kB, of which nearly all is never read.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
LONGEST = 6000

# Lines of a package's source that say something of inputs, outputs and operators.
_TELLING = re.compile(
    r"static void check_input_|ConstantHandle \w+ = |_expected_(dtype|device_type) = |"
    r"if \(.*_(size|stride)\[|: AOTInductorModelBase\(|outputs_info_\[|(in|out)_spec_ = |"
    r"::AOTInductorModel\(|::run_impl\(|int64_t int_array_|= arg\w+_size\[|empty_strided|"
    r"reinterpret_tensor|std::move\(buf|assert_size_stride|output_handles\[|^}|"
    r'^extern "C"  void  |^\s+const \w+\* in_ptr|data_ptr\(\)|proxy_executor_call'
)
_NEXT_TOO = re.compile(r": AOTInductorModelBase\(")  # the numbers go on


_SCHEMA = "(Tensor(a!) A, int[2]? b=None, *, str c='x, (y', float d=1e-3) -> (Tensor LU, Tensor?)"


def packages() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Name and entries, by the end of their names, of every package in the archive of models."""
    with tarfile.open(TESTS / "models" / "models.tar.xz") as archive:
        for member in archive:
            if member.name.endswith(".pt2"):
                content = archive.extractfile(member)
                assert content is not None
                with zipfile.ZipFile(io.BytesIO(content.read())) as package:
                    yield member.name, {name: package.read(name) for name in package.namelist()}


def texts(suffixes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Path and content of the files in the archive of models that end so."""
    with tarfile.open(TESTS / "models" / "models.tar.xz") as archive:
        for member in archive:
            if member.name.endswith(suffixes):
                content = archive.extractfile(member)
                assert content is not None
                yield member.name, content.read().decode()


def entry(entries: dict[str, bytes], suffix: str) -> str:
    return next((text.decode() for name, text in entries.items() if name.endswith(suffix)), "")


def shortened(source: str) -> str:
    """Return the telling lines of a source."""
    kept, go_on = [], 0
    for line in source.splitlines():
        if _TELLING.search(line) or go_on > 0:
            kept.append(line)
            go_on = 2 if _NEXT_TOO.search(line) else go_on - 1
    text = "\n".join(kept)
    return re.sub(r"\n}(\n}\S*)+", "\n}", text) + "\n"


def stored(entries: dict[str, bytes]) -> bytes:
    """Return an archive of stored entries."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def varied(candidates: dict[str, bytes], count: int, longest: int = LONGEST) -> dict[str, bytes]:
    """The shortest of these, each of which has a word that the others before it lack."""
    chosen: dict[str, bytes] = {}
    known: set[bytes] = set()
    for name, content in sorted(candidates.items(), key=lambda item: len(item[1])):
        words = set(re.findall(rb"[A-Za-z_]{4,}", re.sub(rb"\d+", b"", content)))
        if len(content) <= longest and words - known and len(chosen) < count:
            known |= words
            chosen[name] = content
    return chosen


def of_packages(seeds: dict[str, dict[str, bytes]]) -> None:
    """Sources, operators and names, from the packages."""
    sources, nodes, names, schemas = {}, {}, {}, {}
    for path, entries in packages():
        name = path.replace("/", "-").removesuffix(".pt2")
        source, operators = (entry(entries, end) for end in (".wrapper.cpp", ".wrapper.json"))
        short = shortened(source)
        sources[name] = short.encode()
        if operators:
            compact = json.dumps(json.loads(operators), separators=(",", ":"))
            lines = [line for line in short.splitlines() if re.search(r"\bbuf\d", line)]
            nodes[name] = "\0".join([compact, "\n".join(lines)]).encode()
        specs = [re.search(rf'{key}_spec_ = R"\((.*)\)";', source) for key in ("in", "out")]
        if all(specs):
            notes = json.loads(entry(entries, ".wrapper_metadata.json")).get(
                "NEML2_CAPI_EXPORT", ""
            )
            parts = [*(spec[1] for spec in specs if spec), notes, "2L*s17 + (s35 - 1L)*3L"]
            counts = source.count("static void check_input_") % 8 + 8
            names[name] = bytes([counts]) + "\0".join(parts).encode()
        for number, target in enumerate(re.findall(r'"target": ?"([^"]+)"', operators)):
            schemas[f"{name}-{number}"] = (target + _SCHEMA).encode()
    seeds["source"] = varied(sources, 24)
    seeds["nodes"] = varied(nodes, 12)
    seeds["signatures"] = varied(names, 12, 2000)
    seeds["schema"] = varied(schemas, 12)


def of_artifacts(seeds: dict[str, dict[str, bytes]]) -> None:
    """Metadata of every schema, stubs, kernels.json, and small archives."""
    documents = {
        path.replace("/", "-"): text for path, text in texts(("metadata.json", "_meta.json"))
    }
    compact = {
        name: json.dumps(json.loads(text), separators=(",", ":")).encode()
        for name, text in documents.items()
    }
    seeds["metadata"] = varied(compact, 24, 10000)
    stubs = {path.replace("/", "-"): text for path, text in texts((".i",))}
    stubs = {name: re.sub(r"/\S*/output/", "/models/", text) for name, text in stubs.items()}
    seeds["stub"] = varied({name: text.encode() for name, text in stubs.items()}, 12)
    examples = TESTS.parent / "examples" / "artifacts"
    kernels = {}
    for path in sorted(examples.glob("*/kernels/float64/kernels.json")):
        document = json.loads(path.read_text())
        document["kernels"] = document["kernels"][:1]
        kernels[path.parents[2].name] = json.dumps(document, separators=(",", ":")).encode()
    seeds["kernels"] = varied(kernels, 4)
    package = stored(
        {"x/archive_format": b"pt2", "x/data/aotinductor/model/x.wrapper.so": b"\x7fELF"}
    )
    seeds["archive"] = {"package": package, "empty": stored({}), "one": stored({"a": b"1" * 20})}
    seeds["describe"] = {}
    for name, content in seeds["metadata"].items():
        named = sorted(set(re.findall(r'"([\w.]+\.pt2)"', content.decode())))
        files = {f"cpu/float64/{file}": b"" for file in named}
        seeds["describe"][name] = stored({"metadata.json": content, **files})


# An object as small as one can be that has all that the reader of objects looks at.
_OBJECT = """
extern int aoti_torch_get_dim(void), torch_get_dim(void), aoti_record_x(void);
extern int Sleef_powd4_u10(void), GOMP_parallel(void);
extern int aoti_torch_zeros(void) __attribute__((weak));
extern void *memcpy(void *, const void *, unsigned long);
__asm__(".type unique_flag, @gnu_unique_object\\n.globl unique_flag\\n.data\\n"
        "unique_flag: .long 0\\n.size unique_flag, 4");
int own_kernel(void) { return 1; }
void *table[] = {aoti_torch_get_dim, torch_get_dim, aoti_record_x, Sleef_powd4_u10,
                 GOMP_parallel, aoti_torch_zeros, memcpy, own_kernel};
"""
_TORCH = (
    "aoti_torch_get_dim torch_get_dim aoti_record_x Sleef_powd4_u10 GOMP_parallel aoti_torch_zeros"
)
_LINKS = {
    "gnu": ["-Wl,--hash-style=gnu"],
    "sysv": ["-Wl,--hash-style=sysv"],
    "now": ["-Wl,-z,now", "-Wl,-Bsymbolic", "-Wl,-soname,x.so"],
    "versions": ["-Wl,--version-script=VERSIONS", "-lc"],
    "debug": ["-g", "-march=x86-64-v3", "-grecord-gcc-switches", "-lc"],
    "gold": ["-fuse-ld=gold", "-lc"],
    "lld": ["-fuse-ld=lld"],
}


def objects() -> dict[str, bytes]:
    """Shared objects by several linkers, as far as they are installed; x86-64 only."""
    made = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "object.c").write_text(_OBJECT)
        (folder / "torch.c").write_text(
            "".join(f"int {f}(void) {{ return 0; }}\n" for f in _TORCH.split())
        )
        (folder / "VERSIONS").write_text("OURS_1 { global: own_kernel; };\n")
        base = ["cc", "-shared", "-fPIC", "-O1", "-nostdlib", "-Wl,--build-id=none"]
        subprocess.run([*base, "-o", "libtorch_cpu.so", "torch.c"], cwd=folder, check=True)
        for name, options in _LINKS.items():
            strip = [] if name == "debug" else ["-s"]
            small = ["-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=64", *strip]
            command = [*base, "-o", "made.so", "object.c", "libtorch_cpu.so", *small, *options]
            if subprocess.run(command, cwd=folder, capture_output=True).returncode == 0:
                made[name] = (folder / "made.so").read_bytes()
            else:
                print(f"no object by {' '.join(options)}: its linker is not here", file=sys.stderr)
    return made


def main() -> None:
    folder = Path(sys.argv[1])
    seeds: dict[str, dict[str, bytes]] = {"elf": objects()}
    of_packages(seeds)
    of_artifacts(seeds)
    for reader, contents in seeds.items():
        place = folder / reader
        place.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (place / name).write_bytes(content)
        print(f"{reader:12} {len(contents):3} seeds, {sum(map(len, contents.values()))} bytes")


if __name__ == "__main__":
    main()
