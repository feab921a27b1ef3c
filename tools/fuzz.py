"""Fuzzing of the readers of untrusted bytes: programs, inputs, runs and what they cover."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.environments import build_environment, checkout
from tools.native import cmake
from tools.platforms import nmhit_source
from tools.process import CACHE, ROOT, Command, Failure, child_variables, jobs, quietly

FOLDER = ROOT / "tests" / "fuzz"
CORPUS = FOLDER / "corpus.tar.xz"
HOME = CACHE / "fuzz"
RUNS = HOME / "runs.jsonl"  # a line for each run there was on this machine

# The longest input of each reader: short ones are fast, and as good.
LONGEST = {
    "archive": 4096,
    "describe": 16384,
    "elf": 8192,
    "kernels": 4096,
    "metadata": 12288,
    "nodes": 4096,
    "schema": 512,
    "signatures": 2048,
    "source": 6144,
    "stub": 2048,
}
# Unit tests of the readers, and the files of the readers: not those beside them that write, or run.
TESTS = ["archive", "collected_errors", "elf", "elf_tables", "isa", "kernels_json", "metadata"]
TESTS += ["names", "operator_nodes", "schemas", "size_expressions", "source", "stubs", "versions"]
TESTS += [f"hostile_{name}" for name in ("archives", "metadata", "objects", "source", "stubs")]
_READERS = re.compile(
    r"capi/(archive/(?!npz)|artifact/(?!nmhit_)|loader/(elf|isa|versions)|kernels/folder|base/json_doc"
    r"|package/(?!operator_node|scalar_type|signature))"
)
DICTIONARIES = {"describe": "metadata"}

# An input that takes more memory, or more time, is a finding. The harnesses themselves end after
# 5 s of the processor; these are seconds of a clock, on a machine that others may use.
MEGABYTES, SECONDS = 1024, 60

_SANITIZED = (
    "-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
)
# Flags to compile with, and what programs are linked with.
KINDS = {
    "sanitized": (f"{_SANITIZED} -O1 -g1", "-fsanitize=fuzzer,address,undefined"),
    "fast": ("-fsanitize=fuzzer-no-link -O2 -g1", "-fsanitize=fuzzer"),
    "coverage": ("-fprofile-instr-generate -fcoverage-mapping -O0", ""),
}


@dataclass(frozen=True)
class Run:
    """What became of one run of one reader."""

    reader: str
    kind: str
    executions: int
    seconds: float
    megabytes: int  # the most memory that it took
    findings: int
    date: str


def fuzz(readers: Sequence[str], minutes: float, processes: int, fast: bool, minimise: bool) -> int:
    """Search with each reader for some minutes; the exit status says whether all held."""
    unknown = sorted({*readers} - {*LONGEST})
    if unknown:
        raise Failure(f"unknown reader {', '.join(unknown)}; there are {', '.join(LONGEST)}")
    chosen = list(readers) or list(LONGEST)
    kind = "fast" if fast else "sanitized"
    folder = _built(kind, [f"fuzz_{reader}" for reader in chosen])
    _prepare_inputs(chosen)
    if minutes > 0:
        with ThreadPoolExecutor(processes) as pool:
            runs = list(pool.map(lambda reader: _run(folder, kind, reader, minutes), chosen))
        print("\nreader        executions   seconds        MB  findings")
        for run in runs:
            row = f"{run.executions:11}  {run.seconds:8.0f}  {run.megabytes:8}  {run.findings:8}"
            print(f"{run.reader:12} {row}")
        found = [run.reader for run in runs if run.findings]
    else:
        found = []
    if minimise:
        for reader in chosen:
            _minimise(folder, reader)
        _write_corpus()
    print(_total())
    for reader in found:
        print(f"{reader}: inputs that break it are in {HOME / reader / 'findings'}")
    return 1 if found else 0


def coverage() -> int:
    """Print what the corpus and the unit tests reach of the readers, and what they do not."""
    programs = [f"fuzz_{reader}" for reader in LONGEST] + [f"cpp_test_{name}" for name in TESTS]
    folder = _built("coverage", ["neml2_builtin", *programs])
    profiles = folder / "profiles"
    shutil.rmtree(profiles, ignore_errors=True)
    ctest: Command = [Path(cmake(build_environment())).with_name("ctest"), "--test-dir", folder]
    pattern = f"^({'|'.join(programs)})$"
    variables = {"LLVM_PROFILE_FILE": str(profiles / "%p.profraw")}
    quietly("running the tests", [*ctest, "--output-on-failure", "-R", pattern], variables)
    data = folder / "all.profdata"
    merge: Command = ["merge", "-sparse", "-o", data, *sorted(profiles.glob("*.profraw"))]
    quietly("merging", [_tool("llvm-profdata"), *merge])
    first, *others = [folder / "lib" / program for program in programs]
    objects = [f"-object={program}" for program in others]
    export: Command = ["export", "-skip-functions", f"-instr-profile={data}", first, *objects]
    text = quietly("reading", [_tool("llvm-cov"), *export])
    report = json.loads(text[text.index("{") :])  # warnings stand before it
    print("\n| file | lines | of | branches | of | % |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    missed = []
    for file in report["data"][0]["files"]:
        name = file["filename"].partition(f"{ROOT}/")[2]
        if not _READERS.match(name):
            continue
        lines, branches = file["summary"]["lines"], file["summary"]["branches"]
        percent = 100 * branches["covered"] / branches["count"] if branches["count"] else 100
        counts = [lines["covered"], lines["count"], branches["covered"], branches["count"]]
        print(f"| {name} | {' | '.join(map(str, counts))} | {percent:.0f} |")
        taken: dict[tuple[int, int, int], list[int]] = {}  # by all instances of a template
        for line, column, _, end, true, false, *_ in file["branches"]:
            sums = taken.setdefault((line, column, end), [0, 0])
            sums[:] = sums[0] + true, sums[1] + false
        source = (ROOT / name).read_text().splitlines()
        for (line, column, end), (true, false) in taken.items():
            if not (true and false):
                never = "neither" if not (true or false) else "true" if not true else "false"
                whole = source[line - 1]
                condition = whole[column - 1 : end - 1] or whole.strip()
                missed.append(f"{name}:{line}: never {never}: {condition}")
    print("\nnot reached:\n" + "\n".join(missed))
    return 0


def _compiler() -> Path:
    """A clang++ that has libFuzzer."""
    names = ["clang++", *(f"clang++-{version}" for version in range(30, 12, -1))]
    for name in names:
        found = shutil.which(name)
        if found is None:
            continue
        query = [found, "-print-file-name=libclang_rt.fuzzer-x86_64.a"]
        where = subprocess.run(query, capture_output=True, text=True).stdout.strip()
        resources = subprocess.run([found, "-print-resource-dir"], capture_output=True, text=True)
        if Path(where).is_absolute() or [*Path(resources.stdout.strip()).rglob("*fuzzer*.a")]:
            return Path(found)
    raise Failure(
        "Fuzzing needs clang with its run-time libraries. In Debian 12: "
        "apt-get install clang-14 libclang-rt-14-dev llvm-14"
    )


def _tool(name: str) -> Path:
    """A program of LLVM, of the compiler's version."""
    path = _compiler().resolve().with_name(name)
    if not path.exists():
        raise Failure(f"There is no {path}. In Debian 12: apt-get install llvm-14")
    return path


def _built(kind: str, targets: Iterable[str]) -> Path:
    """The folder of the programs, which are built if they have changed."""
    builder = build_environment()
    folder, compiler = HOME / f"{kind}-{checkout()}", _compiler()
    flags, engine = KINDS[kind]
    command: Command = [
        *(cmake(builder), "-S", ROOT, "-B", folder, "-G", "Ninja"),
        f"-DPython_EXECUTABLE={builder.python}",
        f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_C_COMPILER={str(compiler).replace('clang++', 'clang')}",
        *(["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []),
        "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_CXX_FLAGS={flags}",
        f"-DCMAKE_C_FLAGS={flags}",
        f"-DNMHIT_SOURCE={nmhit_source(builder)}",
        f"-DNEML2_CAPI_FUZZ_ENGINE={engine}",
        f"-DNEML2_CAPI_TESTS={'OFF' if engine else 'ON'}",
    ]
    quietly(f"configuring the {kind} readers", command, builder.variables)
    build: Command = [cmake(builder), "--build", folder, "--parallel", jobs(), "--target", *targets]
    quietly(f"building the {kind} readers", build, builder.variables)
    return folder


def _prepare_inputs(readers: Iterable[str]) -> None:
    """Seeds, written once, and the committed corpus beside what was found since."""
    seeds = HOME / "seeds"
    if not seeds.exists():
        python = build_environment().python
        quietly("making seeds", [python, FOLDER / "seeds.py", seeds])
    for reader in readers:
        place = HOME / reader
        for name in ("corpus", "findings", "seeds"):
            (place / name).mkdir(parents=True, exist_ok=True)
        for file in (seeds / reader).glob("*"):
            shutil.copy2(file, place / "seeds")
    if CORPUS.exists():
        with tarfile.open(CORPUS) as archive:
            for member in archive:
                reader, _, name = member.name.partition("/")
                content = archive.extractfile(member)
                if reader in readers and content:
                    (HOME / reader / "corpus" / Path(name).name).write_bytes(content.read())


def _run(folder: Path, kind: str, reader: str, minutes: float) -> Run:
    """Run one reader until its time is over or it breaks, and write down what became of it."""
    place = HOME / reader
    before = {*(place / "findings").iterdir()}
    dictionary = FOLDER / "dictionaries" / f"{DICTIONARIES.get(reader, reader)}.dict"
    command = [
        str(folder / "lib" / f"fuzz_{reader}"),
        *(f"-max_total_time={round(60 * minutes)}", f"-timeout={SECONDS}"),
        *(f"-rss_limit_mb={MEGABYTES}", f"-malloc_limit_mb={MEGABYTES}"),
        *(f"-max_len={LONGEST[reader]}", "-print_final_stats=1"),
        f"-artifact_prefix={place / 'findings'}/",
        *([f"-dict={dictionary}"] if dictionary.exists() else []),
        *(str(place / name) for name in ("corpus", "seeds")),
        *([str(FOLDER / "found" / reader)] if (FOLDER / "found" / reader).exists() else []),
    ]
    start = time.monotonic()
    log = place / f"{kind}.log"
    with log.open("w") as output:
        subprocess.run(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=child_variables({"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=0"}),
            preexec_fn=lambda: os.nice(10),
        )
    text = log.read_text(errors="replace")
    run = Run(
        reader,
        kind,
        _last(r"number_of_executed_units: *(\d+)", text) or _last(r"^#(\d+)\t", text),
        round(time.monotonic() - start, 1),
        _last(r"peak_rss_mb: *(\d+)", text) or _last(r"rss: (\d+)Mb", text),
        len({*(place / "findings").iterdir()} - before),
        time.strftime("%Y-%m-%d"),
    )
    with RUNS.open("a") as lines:
        lines.write(json.dumps(asdict(run)) + "\n")
    print(f"{reader}: {run.executions} executions, {run.findings} findings; {log}", flush=True)
    return run


def _last(pattern: str, text: str) -> int:
    found = re.findall(pattern, text, re.MULTILINE)
    return int(found[-1]) if found else 0


def _total() -> str:
    """All runs there were on this machine, summed."""
    if not RUNS.exists():
        return "no run so far"
    runs = [json.loads(line) for line in RUNS.read_text().splitlines()]
    executions = sum(run["executions"] for run in runs)
    hours = sum(run["seconds"] for run in runs) / 3600
    most = max(run["megabytes"] for run in runs)
    return (
        f"in all on this machine: {executions} executions in {hours:.1f} h of one process, "
        f"{sum(run['findings'] for run in runs)} findings, at most {most} MB"
    )


def _minimise(folder: Path, reader: str) -> None:
    """Keep, of the corpus and the seeds, the fewest inputs that reach all that these reach."""
    place = HOME / reader
    least = place / "least"
    shutil.rmtree(least, ignore_errors=True)
    least.mkdir()
    program = folder / "lib" / f"fuzz_{reader}"
    options = [f"-max_len={LONGEST[reader]}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEGABYTES}"]
    inputs: Command = [least, place / "corpus", place / "seeds"]
    quietly(f"minimising {reader}", [program, "-merge=1", *options, *inputs])
    shutil.rmtree(place / "corpus")
    least.rename(place / "corpus")


def _write_corpus() -> None:
    """Pack the corpora of all readers, the same for the same files."""
    with tarfile.open(CORPUS, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as archive:
        for file in sorted(HOME.glob("*/corpus/*")):
            member = tarfile.TarInfo(f"{file.parents[1].name}/{file.name}")
            member.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(member, content)
    print(f"wrote {CORPUS.relative_to(ROOT)}, {CORPUS.stat().st_size / 1e3:.0f} kB")
