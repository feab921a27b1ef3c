"""Fuzz the readers of untrusted bytes by libFuzzer, or measure what is covered: `build.py fuzz`."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.environments import build_environment, checkout
from tools.native import Build, configured
from tools.process import CACHE, ROOT, Command, Failure, child_variables, quietly

FOLDER = ROOT / "tests" / "fuzz"
CORPUS = FOLDER / "corpus.tar.xz"
HOME = CACHE / "fuzz"
READERS = sorted({file.stem for file in FOLDER.glob("*.cpp")} - {"replay"})
# Unit tests of the readers, and the files of the readers: not those beside them that write, or run.
TESTS = ["archive", "collected_errors", "elf", "elf_tables", "isa", "kernels_json", "metadata"]
TESTS += ["names", "operator_nodes", "schemas", "size_expressions", "source", "stubs", "versions"]
TESTS += [f"hostile_{name}" for name in ("archives", "metadata", "objects", "source", "stubs")]
_FILES = re.compile(
    r"(archive/(?!npz)|artifact/|loader/(elf|isa|versions)|kernels/folder|base/json_doc"
    r"|package/(?!operator_node|scalar_type|signature)).*\.(cpp|h)$"
)

# An input that takes more memory, or more time, is a finding. The harnesses themselves end after
# 5 s of the processor; these are seconds of a clock, on a machine that others may use.
LIMITS = ["-timeout=60", "-rss_limit_mb=1024", "-malloc_limit_mb=1024"]

# Flags to compile with, and to link the programs with.
KINDS = {
    "sanitized": (
        "-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all "
        "-fno-omit-frame-pointer -O1 -g1",
        "-fsanitize=fuzzer,address,undefined",
    ),
    "fast": ("-fsanitize=fuzzer-no-link -O2 -g1", "-fsanitize=fuzzer"),
    "coverage": ("-fprofile-instr-generate -fcoverage-mapping -O0", ""),
}


def search(readers: Sequence[str], minutes: float, jobs: int, fast: bool, minimise: bool) -> int:
    """Search with each reader for some minutes; the exit status says whether all held."""
    if unknown := sorted({*readers} - {*READERS}):
        raise Failure(f"unknown reader {', '.join(unknown)}; there are {', '.join(READERS)}")
    chosen = list(readers) or READERS
    build = _built("fast" if fast else "sanitized", [f"fuzz_{reader}" for reader in chosen])
    _prepare_inputs()
    held = [True]
    if minutes > 0:
        with ThreadPoolExecutor(jobs) as pool:
            held = list(pool.map(lambda reader: _run(build, reader, minutes), chosen))
    if minimise:
        for reader in chosen:
            _minimise(build, reader)
        _write_corpus()
    return 0 if all(held) else 1


def coverage() -> int:
    """Print what the corpus and the unit tests reach of the readers, and write where they do."""
    programs = [f"fuzz_{reader}" for reader in READERS] + [f"cpp_test_{name}" for name in TESTS]
    build = _built("coverage", ["neml2_builtin", *programs])
    profiles = build.folder / "profiles"
    shutil.rmtree(profiles, ignore_errors=True)
    ctest: Command = [Path(build.cmake).with_name("ctest"), "--test-dir", build.folder]
    variables = {"LLVM_PROFILE_FILE": str(profiles / "%p.profraw")}
    quietly("running the tests", [*ctest, "-R", f"^({'|'.join(programs)})$"], variables)
    data, pages = build.folder / "all.profdata", ROOT / "build" / "coverage"
    llvm = _compiler().resolve()
    merge: Command = ["merge", "-sparse", "-o", data, *sorted(profiles.glob("*.profraw"))]
    quietly("merging", [llvm.with_name("llvm-profdata"), *merge])
    first, *others = [build.folder / "lib" / program for program in programs]
    capi = ROOT / "capi"
    files = [f for f in sorted(capi.rglob("*")) if _FILES.match(f.relative_to(capi).as_posix())]
    of: Command = [first, *(f"-object={program}" for program in others), f"-instr-profile={data}"]
    cov = llvm.with_name("llvm-cov")
    show: Command = ["show", *of, "-format=html", "-show-branches=count", f"-output-dir={pages}"]
    quietly("writing the pages", [cov, *show, *files])
    print(quietly("summing up", [cov, "report", *of, "-show-region-summary=false", *files]))
    print(f"each line and branch: {(pages / 'index.html').relative_to(ROOT)}")
    return 0


def _compiler() -> Path:
    """The clang++ that has libFuzzer beside it, if its run-time libraries are installed."""
    names = ["clang++", *(f"clang++-{version}" for version in range(30, 12, -1))]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise Failure(
            "Fuzzing needs clang with its run-time libraries. In Debian 12: "
            "apt-get install clang-14 libclang-rt-14-dev llvm-14"
        )
    return Path(found)


def _built(kind: str, targets: Iterable[str]) -> Build:
    """The programs, which are built if they have changed."""
    compiler, (flags, engine) = str(_compiler()), KINDS[kind]
    build = configured(
        *("-DCMAKE_BUILD_TYPE=Debug", "-DNEML2_CAPI_WERROR=OFF"),
        f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_C_COMPILER={compiler.replace('clang++', 'clang')}",
        *(f"-DCMAKE_{language}_FLAGS={flags}" for language in ("C", "CXX")),
        f"-DNEML2_CAPI_FUZZ_ENGINE={engine}",
        f"-DNEML2_CAPI_TESTS={'OFF' if engine else 'ON'}",
        folder=HOME / f"{kind}-{checkout()}",
    )
    build.make(*targets, title=f"building the {kind} readers")
    return build


def _prepare_inputs() -> None:
    """Seeds, written once, and the committed corpus beside what was found since."""
    if not (HOME / "seeds").exists():
        command: Command = [build_environment().python, FOLDER / "seeds.py", HOME / "seeds"]
        quietly("making seeds", command)
    for reader in READERS:
        for name in ("corpus", "findings"):
            (HOME / reader / name).mkdir(parents=True, exist_ok=True)
    with tarfile.open(CORPUS) as archive:
        for member in archive:
            reader, _, name = member.name.partition("/")
            content = archive.extractfile(member)
            if reader in READERS and content:
                (HOME / reader / "corpus" / Path(name).name).write_bytes(content.read())


def _run(build: Build, reader: str, minutes: float) -> bool:
    """Run one reader until its time is over or it breaks, and tell whether it held."""
    place = HOME / reader
    metadata = FOLDER / "dictionaries" / "metadata.dict"  # of what describes an artifact, too
    words = metadata if reader == "describe" else metadata.with_stem(reader)
    command = [
        str(build.folder / "lib" / f"fuzz_{reader}"),
        *(f"-max_total_time={round(60 * minutes)}", *LIMITS, "-print_final_stats=1"),
        f"-artifact_prefix={place / 'findings'}/",
        *([f"-dict={words}"] if words.exists() else []),
        *map(str, filter(Path.exists, _inputs(reader))),
    ]
    log = place / "log.txt"
    with log.open("w") as output:
        status = subprocess.run(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=child_variables({"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=0"}),
            preexec_fn=lambda: os.nice(10),
        ).returncode
    told = dict(re.findall(r"^stat::(\w+): +(\d+)$", log.read_text(errors="replace"), re.M))
    executions, most = told.get("number_of_executed_units", "?"), told.get("peak_rss_mb", "?")
    end = f"broken by an input in {place / 'findings'}" if status else "held"
    print(f"{reader}: {executions} executions, {most} MB, {end}; {log}", flush=True)
    return status == 0


def _inputs(reader: str) -> list[Path]:
    """Folders to begin with; what reaches new code is written into the first."""
    return [HOME / reader / "corpus", HOME / "seeds" / reader, FOLDER / "found" / reader]


def _minimise(build: Build, reader: str) -> None:
    """Keep, of the corpus and the seeds, the fewest inputs that reach all that these reach."""
    corpus, seeds, _ = _inputs(reader)
    least = corpus.with_name("least")
    shutil.rmtree(least, ignore_errors=True)
    least.mkdir()
    program = build.folder / "lib" / f"fuzz_{reader}"
    quietly(f"minimising {reader}", [program, "-merge=1", *LIMITS, least, corpus, seeds])
    shutil.rmtree(corpus)
    least.rename(corpus)


def _write_corpus() -> None:
    """Pack the corpora of all readers, the same for the same files."""
    with tarfile.open(CORPUS, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as archive:
        for file in sorted(HOME.glob("*/corpus/*")):
            member = tarfile.TarInfo(f"{file.parents[1].name}/{file.name}")
            member.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(member, content)
    print(f"wrote {CORPUS.relative_to(ROOT)}, {CORPUS.stat().st_size / 1e3:.0f} kB")


def main() -> int:
    parser = argparse.ArgumentParser(prog="build.py fuzz", description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="READER", help="archive, elf, ...; else all")
    parser.add_argument("--minutes", type=float, default=1, metavar="N", help="for each reader")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="readers at a time")
    parser.add_argument("--fast", action="store_true", help="without sanitizers")
    parser.add_argument("--minimise", action="store_true", help="renew the committed corpus then")
    parser.add_argument("--coverage", action="store_true", help="measure what is reached instead")
    options = vars(parser.parse_args())
    try:
        return coverage() if options.pop("coverage") else search(**options)
    except Failure as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
