"""neml2-capi doctor: what is broken in an artifact, and what mends it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click import ClickException
from command_line import answer, command, findings

from neml2_capi import examples
from neml2_capi.cli.made import try_out

Artifacts = Mapping[str, Path]


PACKAGE = "cpu/float64/elasticity.pt2"
STRACE = shutil.which("strace")
PREBUILT = ["elasticity", "viscoplastic", "combined_hardening"]


@pytest.fixture
def broken(artifacts: Artifacts, tmp_path: Path) -> Path:
    """A copy of the packages of the elasticity artifact, to be broken."""
    kernels = shutil.ignore_patterns("kernels")
    return Path(shutil.copytree(artifacts["elasticity"], tmp_path / "elasticity", ignore=kernels))


def edit_metadata(root: Path, change: Callable[[Any], object]) -> None:
    path = root / "metadata.json"
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


def edit_package(path: Path, suffix: str, before: str, after: str) -> None:
    """Replace text in the entry of a package that ends with `suffix`, and write a good zip."""
    edit_entry(path, suffix, lambda content: replaced(content, before.encode(), after.encode()))


def replaced(content: bytes, before: bytes, after: bytes) -> bytes:
    assert before in content
    return content.replace(before, after)


def edit_entry(path: Path, suffix: str, change: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    (name,) = [name for name in entries if name.endswith(suffix)]
    entries[name] = change(entries[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def only(path: Path, *options: str) -> dict[str, str]:
    (finding,) = findings(path, *options)
    return finding


@pytest.mark.parametrize(
    "name", [*PREBUILT, "radial_return", "polycrystal", "gmres", "grains", "creep_3.0.3"]
)
def test_a_good_artifact_will_run(artifacts: Artifacts, name: str) -> None:
    assert findings(artifacts[name]) == []


def test_it_says_so(artifacts: Artifacts) -> None:
    *_, said, last = answer("doctor", artifacts["elasticity"]).splitlines()
    assert last.endswith("will run here")
    assert said == "it was not opened, which runs its code: --run does"
    assert "not opened" not in answer("doctor", artifacts["elasticity"], "--run")


def no_such_folder(root: Path) -> None:
    shutil.rmtree(root)


def no_metadata(root: Path) -> None:
    (root / "metadata.json").unlink()


def not_json(root: Path) -> None:
    (root / "metadata.json").write_text('{"schema_version": 14')


def unknown_schema(root: Path) -> None:
    edit_metadata(root, lambda metadata: metadata.update(schema_version=9999))


def field_missing(root: Path) -> None:
    edit_metadata(root, lambda metadata: metadata["segments"][0].pop("outputs"))


def cuda_leaf(root: Path) -> None:
    (root / "cpu").rename(root / "cuda")


def other_dtype(root: Path) -> None:
    (root / "cpu" / "float64").rename(root / "cpu" / "float32")


def package_missing(root: Path) -> None:
    (root / PACKAGE).unlink()


def package_truncated(root: Path) -> None:
    content = (root / PACKAGE).read_bytes()
    (root / PACKAGE).write_bytes(content[: len(content) // 2])


def package_damaged(root: Path) -> None:
    content = bytearray((root / PACKAGE).read_bytes())
    content[len(content) // 2] ^= 1
    (root / PACKAGE).write_bytes(content)


def wrong_instruction_set(root: Path) -> None:
    edit_package(root / PACKAGE, "_metadata.json", '"AVX2"', '"VSX4"')


def wrong_machine(root: Path) -> None:
    edit_package(root / PACKAGE, "_metadata.json", '"x86_64"', '"riscv64"')


def foreign_code(root: Path) -> None:
    """ELF machine 243, RISC-V, in an object whose metadata does not say so."""
    edit_entry(root / PACKAGE, ".wrapper.so", lambda so: so[:18] + b"\xf3\x00" + so[20:])


def package_for_cuda(root: Path) -> None:
    edit_package(
        root / PACKAGE, "_metadata.json", '"AOTI_DEVICE_KEY": "cpu"', '"AOTI_DEVICE_KEY": "cuda"'
    )


def missing_operator(root: Path) -> None:
    edit_package(
        root / PACKAGE, ".wrapper.so", "aoti_torch_empty_strided", "aoti_torch_empty_strange"
    )


def package_of_another_model(root: Path) -> None:
    edit_metadata(root, lambda metadata: metadata["segments"][0].update(param_inputs=[]))


def solver_out_of_bounds(root: Path) -> None:
    edit_metadata(root, lambda metadata: metadata.update(solver_config=SOLVER))


def dangling_name(root: Path) -> None:
    def rename(metadata: Any) -> None:
        metadata["segments"][0]["inputs"][0]["name"] = "total_strain"

    edit_metadata(root, rename)


#: Of an artifact that would make -1 iterations.
SOLVER = {
    "atol": 1e-10,
    "rtol": 1e-10,
    "miters": -1,
    "substep_del_tol": 1e-6,
    "ls_c": 1e-3,
    "ls_type": "BACKTRACKING",
    "ls_max_iters": 1,
    "ls_cutback": 2.0,
    "solver_kind": "direct",
}
AGAIN = (
    "neml2-compile INPUT.i --model elasticity --device cpu --dtype float64 -p elasticity.E "
    "-d stress:strain"
)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the packages are for x86-64")
@pytest.mark.parametrize(
    ("breaking", "problem", "mend"),
    [
        (no_such_folder, "There is no folder", "the folder that neml2-compile wrote"),
        (no_metadata, "There is no file", "neml2-compile INPUT.i"),
        (not_json, "is not JSON", "neml2-compile INPUT.i"),
        (unknown_schema, "9999", AGAIN),
        (field_missing, "segments[0] has no field 'outputs'", AGAIN),
        (cuda_leaf, "Present: cuda/float64", "--device cpu"),
        (other_dtype, "Present: cpu/float32", "--dtype float32"),
        (package_missing, "is missing", AGAIN),
        (package_truncated, "truncated", AGAIN),
        (package_damaged, "damaged", AGAIN),
        (wrong_instruction_set, '"VSX4"', f"TORCHINDUCTOR_CPP_MARCH=x86-64-v3 {AGAIN}"),
        (wrong_machine, '"riscv64"', AGAIN),
        (foreign_code, "ELF machine 243", AGAIN),
        (package_for_cuda, '"cuda"', AGAIN),
        (missing_operator, "aoti_torch_empty_strange", "Write the model without it"),
        (package_of_another_model, "takes 2 tensors", "from one compilation"),
        (dangling_name, "'total_strain'", "from one compilation"),
        (solver_out_of_bounds, "'miters' must lie between 1", AGAIN),
    ],
)
def test_doctor_names_what_is_broken_and_what_mends_it(
    broken: Path, breaking: Callable[[Path], None], problem: str, mend: str
) -> None:
    breaking(broken)
    finding = only(broken)
    assert problem in finding["problem"]
    assert mend in finding["mend"]


def test_doctor_names_the_element_type_of_kernels_alone(tmp_path: Path) -> None:
    root = Path(shutil.copytree(examples.path("elasticity"), tmp_path / "elasticity"))
    (root / "kernels" / "float64").rename(root / "kernels" / "float32")
    assert "--dtype float32" in only(root)["mend"]


def test_doctor_advises_to_export_a_law_again(broken: Path) -> None:
    """What neml2_capi.export wrote has no input file."""
    edit_metadata(broken, lambda metadata: metadata.update(exporter="neml2_capi"))
    package_missing(broken)
    mend = only(broken)["mend"]
    assert "neml2-compile" not in mend
    assert "neml2_capi.export.model(LAW, 'elasticity', inputs={'strain': (6,)}" in mend
    assert "parameters={'elasticity.E': '...'}" in mend


def test_doctor_says_the_same_to_people(broken: Path) -> None:
    package_missing(broken)
    finding, shown = only(broken), command("doctor", broken)
    assert shown.returncode == 1
    assert not shown.stderr
    assert shown.stdout.splitlines() == [
        f"wrong  {finding['problem']}",
        f"       {finding['mend']}",
        f"{broken} will not run here: 1 thing is wrong",
    ]


def test_doctor_names_all_that_is_broken(artifacts: Artifacts, tmp_path: Path) -> None:
    root = Path(shutil.copytree(artifacts["viscoplastic"], tmp_path / "viscoplastic"))
    leaf = root / "cpu" / "float64"
    (leaf / "viscoplastic_residual.pt2").unlink()
    (leaf / "viscoplastic_predictor.pt2").unlink()
    (leaf / "viscoplastic_solve.pt2").write_bytes(b"PK")
    jacobian = leaf / "viscoplastic_jacobian.pt2"
    edit_package(jacobian, "_metadata.json", '"AVX2"', '"VSX4"')
    edit_package(jacobian, ".wrapper.so", "aoti_torch_empty_strided", "aoti_torch_empty_strange")
    told = [(finding["subject"], finding["problem"]) for finding in findings(root)]
    assert {subject for subject, _ in told} == {
        f"viscoplastic_{kind}.pt2" for kind in ("residual", "predictor", "solve", "jacobian")
    }
    problems = " ".join(problem for subject, problem in told if subject == jacobian.name)
    assert "VSX4" in problems
    assert "aoti_torch_empty_strange" in problems
    assert len(told) == 5


def test_packages_of_another_compilation_are_found(artifacts: Artifacts, tmp_path: Path) -> None:
    root = Path(shutil.copytree(artifacts["viscoplastic"], tmp_path / "viscoplastic"))
    leaf = root / "cpu" / "float64"
    pairs = (("jacobian", "residual"), ("solve", "predictor"), ("predictor", "residual"))
    for kind, other in pairs:
        good = leaf / f"viscoplastic_{kind}.pt2"
        kept = good.read_bytes()
        good.write_bytes((leaf / f"viscoplastic_{other}.pt2").read_bytes())
        finding = only(root)
        assert f"viscoplastic_{kind}.pt2 takes " in finding["problem"]
        assert "from one compilation" in finding["mend"]
        good.write_bytes(kept)


def test_doctor_follows_a_stub(artifacts: Artifacts, broken: Path) -> None:
    stub = shutil.copy(artifacts["elasticity"].parent / "elasticity_aoti.i", broken.parent)
    assert findings(Path(stub)) == []
    wrong_machine(broken)
    unknown_schema(broken)
    assert [finding["subject"] for finding in findings(Path(stub))] == [
        "schema_version",
        "elasticity.pt2",
    ]


def test_the_element_type_is_that_which_is_asked_for(artifacts: Artifacts) -> None:
    root = artifacts["elasticity_float32"]
    assert "Load it as float32" in only(root)["mend"]
    assert findings(root, "--dtype", "float32") == []


def executable_mappings(*arguments: str | Path) -> str:
    """The libraries that a process of neml2-capi has mapped as code when it ends."""
    script = (
        "import sys; from neml2_capi.cli.commands import neml2_capi;"
        "neml2_capi(sys.argv[1:], standalone_mode=False);"
        "print('MAPPED', *(line for line in open('/proc/self/maps') if 'x' in line.split()[1]))"
    )
    program = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    return done.stdout.partition("MAPPED")[2]


@pytest.mark.full("reads its own memory")
def test_doctor_and_inspect_keep_no_code_of_the_artifact(artifacts: Artifacts) -> None:
    root = artifacts["viscoplastic"]
    for action in ("doctor", "inspect"):
        mapped = executable_mappings(action, root, "--json")
        assert "libneml2_capi" in mapped
        assert not re.search(r"memfd|\.pt2", mapped)
    loaded = executable_mappings("bench", root, "--batch", "1", "--threads", "1", "--seconds", "0")
    assert re.search(r"memfd|deleted", loaded)


def system_calls(log: Path, *arguments: str | Path) -> list[str]:
    assert STRACE is not None
    trace = [STRACE, "-f", "-y", "-o", str(log), "-e", "trace=openat,mmap,mprotect,memfd_create"]
    program = [sys.executable, "-m", "neml2_capi.cli", *map(str, arguments)]
    done = subprocess.run([*trace, *program], capture_output=True, text=True)
    if "PTRACE" in done.stderr:
        pytest.skip("processes may not be traced here")
    return log.read_text().splitlines()


@pytest.mark.skipif(STRACE is None, reason="strace was not found")
@pytest.mark.parametrize("breaking", [None, wrong_instruction_set, missing_operator])
def test_no_byte_of_an_artifact_is_ever_mapped_as_code(
    broken: Path, breaking: Callable[[Path], None] | None
) -> None:
    if breaking:
        breaking(broken)
    log = broken.parent / "trace"

    def of_artifact(calls: list[str]) -> tuple[list[str], list[str]]:
        ours = [call for call in calls if str(broken) in call or "memfd" in call]
        return ours, [call for call in ours if "PROT_EXEC" in call or "memfd" in call]

    read, executable = of_artifact(system_calls(log, "doctor", broken))
    assert any("elasticity.pt2" in call for call in read)
    assert executable == []
    if not breaking:
        _, executable = of_artifact(system_calls(log, "doctor", broken, "--run"))
        assert executable


def test_a_trial_loads_and_evaluates(artifacts: Artifacts) -> None:
    for name in PREBUILT:
        document = json.loads(answer("doctor", artifacts[name], "--run", "--json"))
        (note,) = document["notes"]
        assert note == "it was loaded and evaluated on its kernels: 2 points with made-up inputs"


def test_compile_opens_what_it_has_made_for_this_machine(broken: Path) -> None:
    try_out(broken, "float64")
    wrong_machine(broken)
    try_out(broken, "float64")
    solver_out_of_bounds(broken)
    with pytest.raises(ClickException, match=r"compiled, and cannot be opened: .*'miters' must"):
        try_out(broken, "float64")


def test_a_crash_is_a_finding(broken: Path) -> None:
    """The code of the package is overwritten by int3; nothing but running it can tell."""
    edit_entry(broken / PACKAGE, ".wrapper.so", trapped)
    assert findings(broken) == []
    finding = only(broken, "--run")
    assert "ended by SIG" in finding["problem"]


def trapped(so: bytes) -> bytes:
    """The object with its section .text full of traps."""
    headers, size, count, names = (
        int.from_bytes(so[0x28:0x30], "little"),
        int.from_bytes(so[0x3A:0x3C], "little"),
        int.from_bytes(so[0x3C:0x3E], "little"),
        int.from_bytes(so[0x3E:0x40], "little"),
    )

    def section(index: int) -> tuple[int, int, int]:
        at = headers + index * size
        name = int.from_bytes(so[at : at + 4], "little")
        offset = int.from_bytes(so[at + 24 : at + 32], "little")
        length = int.from_bytes(so[at + 32 : at + 40], "little")
        return name, offset, length

    _, strings, _ = section(names)
    for index in range(count):
        name, offset, length = section(index)
        if so[strings + name :].startswith(b".text\0"):
            return so[:offset] + b"\xcc" * length + so[offset + length :]
    raise AssertionError("the object has no section .text")
