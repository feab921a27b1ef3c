"""Packages on another machine: an older system, or one that runs the kernels alone."""

from __future__ import annotations

import json
import logging
import os
import platform
import shutil
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from states import state_of

from neml2_capi import Error, Model, examples
from neml2_capi.artifact.needs import needs_of
from neml2_capi.kernels.folder import directory_checksum

Artifacts = Mapping[str, Path]
Edit = Callable[[bytes], bytes]

pytestmark = [
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="packages are for x86-64"),
    pytest.mark.numbers,
]

# Versions that Debian 12 has and Debian 10 lacks: they stand for tomorrow's, which all
# systems of today lack.
NEWER = ["GLIBC_2.29", "GLIBC_2.32", "GLIBC_2.34", "GLIBCXX_3.4.29", "GLIBCXX_3.4.30"]


def of_tomorrow(version: str) -> str:
    return version.replace("_2.", "_9.").replace("_3.4", "_9.4")


def version_hash(name: str) -> bytes:
    """The hash of a symbol version in an ELF file."""
    value = 0
    for character in name.encode():
        value = (value << 4) + character
        value = (value ^ ((value & 0xF0000000) >> 24)) & 0x0FFFFFFF
    return struct.pack("<I", value)


def asking_for(*versions: str) -> Edit:
    """What the linker of a newer system writes: these versions are of tomorrow."""

    def edit(code: bytes) -> bytes:
        for before in versions:
            after = of_tomorrow(before)
            code = code.replace(before.encode() + b"\0", after.encode() + b"\0")
            code = code.replace(version_hash(before), version_hash(after))
        return code

    return edit


def replacing(before: bytes, after: bytes) -> Edit:
    assert len(before) == len(after)
    return lambda content: content.replace(before, after)


def edit(package: Path, suffix: str, change: Edit) -> None:
    with zipfile.ZipFile(package) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(package, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, change(content) if name.endswith(suffix) else content)


def travelled(root: Path, into: Path, suffix: str, change: Edit, *, kernels: bool = True) -> Path:
    """A copy of an artifact whose packages were compiled elsewhere, and its kernels with them."""
    ignored = shutil.ignore_patterns(*([] if kernels else ["kernels"]))
    copy = Path(shutil.copytree(root, into / root.name, ignore=ignored))
    for package in copy.rglob("*.pt2"):
        edit(package, suffix, change)
    for file in copy.glob("kernels/*/kernels.json"):
        document = json.loads(file.read_text())
        for entry in document["kernels"]:
            package = copy / entry["package"]
            if package.is_file():
                entry["package_checksum"] = directory_checksum(package)
        file.write_text(json.dumps(document))
    return copy


def results(model: Model, name: str) -> dict[str, Any]:
    return dict(model.forward(state_of(name, model)))


@pytest.mark.parametrize("name", ["elasticity", "viscoplastic"])
def test_a_package_of_a_newer_system_gives_the_same_bits(
    artifacts: Artifacts, name: str, tmp_path: Path
) -> None:
    newer = travelled(artifacts[name], tmp_path, ".wrapper.so", asking_for(*NEWER), kernels=False)
    here = Model(artifacts[name])
    here.options["kernels"] = "off"
    expected, found = results(here, name), results(Model(newer), name)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value)


def test_what_this_system_has_no_replacement_for_is_named(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    """A constructor of std::runtime_error."""
    change = asking_for("GLIBCXX_3.4.21")
    newer = travelled(artifacts["elasticity"], tmp_path, ".wrapper.so", change, kernels=False)
    told = r"newer system: it calls .*13runtime_errorC1EPKc \(GLIBCXX_9\.4\.21\).*Compile the model"
    with pytest.raises(Error, match=told):
        Model(newer)


ELSEWHERE = {
    "machine": ("_metadata.json", replacing(b'"x86_64"', b'"s390x "'), '"s390x "'),
    "instruction set": ("_metadata.json", replacing(b'"AVX2"', b'"VSX4"'), '"VSX4"'),
    "C++ library": (".wrapper.so", asking_for("GLIBCXX_3.4.21"), "GLIBCXX_9.4.21"),
}


@pytest.fixture(params=ELSEWHERE)
def elsewhere(request: pytest.FixtureRequest, artifacts: Artifacts, tmp_path: Path) -> Any:
    """An artifact whose packages are for something else, with kernels, and how that is called."""
    suffix, change, why = ELSEWHERE[request.param]
    return travelled(artifacts["viscoplastic"], tmp_path, suffix, change), why


def test_kernels_run_where_packages_do_not(
    elsewhere: tuple[Path, str], artifacts: Artifacts, caplog: pytest.LogCaptureFixture
) -> None:
    root, why = elsewhere
    with caplog.at_level(logging.WARNING, "neml2_capi"):
        model = Model(root)
        found = results(model, "viscoplastic")
    (record,) = [r for r in caplog.records if r.name == "neml2_capi.model"]
    assert record.levelno == logging.WARNING
    assert "runs on its kernels, since its packages do not run here" in record.getMessage()
    assert why in record.getMessage()
    here = Model(artifacts["viscoplastic"])
    for key, value in results(here, "viscoplastic").items():
        np.testing.assert_array_equal(found[key], value)


def test_libtorch_is_not_replaced_by_kernels(elsewhere: tuple[Path, str]) -> None:
    with pytest.raises(Error):
        Model(elsewhere[0], runtime="libtorch")


def test_where_neither_runs_both_reasons_are_told(elsewhere: tuple[Path, str]) -> None:
    root, why = elsewhere
    for file in root.glob("kernels/*/kernels.json"):
        document = json.loads(file.read_text())
        document["objects"] = []
        file.write_text(json.dumps(document))
    with pytest.raises(Error) as refused:
        Model(root)
    assert why in str(refused.value)
    assert "Nor do its kernels run: No object in" in str(refused.value)
    assert "build-kernels" in str(refused.value)


# ------------------------------------------------------------------------------------------------
# The command line
# ------------------------------------------------------------------------------------------------


def told(*words: str | Path) -> tuple[int, str]:
    """The exit status, and what was printed."""
    pytest.importorskip("click")
    pytest.importorskip("rich")
    from click.testing import CliRunner

    from neml2_capi.cli.commands import neml2_capi as command

    done = CliRunner().invoke(command, list(map(str, words)))
    return done.exit_code, done.output


def test_doctor_and_inspect_say_that_kernels_run(elsewhere: tuple[Path, str]) -> None:
    root, why = elsewhere
    status, shown = told("doctor", root)
    assert (status, "will run here" in shown) == (0, True)
    assert "runs on its kernels, since its packages do not run here" in shown
    assert why in shown
    status, shown = told("doctor", "--json", "--run", root)
    document = json.loads(shown)
    assert document["will_run"]
    assert why in document["kernels_because"][0]["problem"]
    assert document["notes"] == [
        "it was loaded and evaluated on its kernels: 2 points with made-up inputs"
    ]
    packages = json.loads(told("inspect", "--json", root)[1])["packages"]
    assert {package["runtime"] for package in packages} == {"its kernel"}


def test_doctor_has_kernels_built_where_there_are_none_for_this_machine(
    elsewhere: tuple[Path, str],
) -> None:
    root, why = elsewhere
    for file in root.glob("kernels/*/kernels.json"):
        document = json.loads(file.read_text())
        document["objects"] = []
        file.write_text(json.dumps(document))
    status, shown = told("doctor", root)
    assert status == 1
    assert why in shown
    assert f"neml2-capi build-kernels {root}" in shown


def test_kernels_built_for_another_processor_alone_are_refused_and_told(tmp_path: Path) -> None:
    """What `--target native` built elsewhere."""
    root = Path(shutil.copytree(examples.path("elasticity"), tmp_path / "elasticity"))
    (file,) = root.glob("kernels/*/kernels.json")
    document = json.loads(file.read_text())
    document["objects"] = [{**document["objects"][0], "target": "aarch64", "machine": "aarch64"}]
    file.write_text(json.dumps(document))
    with pytest.raises(Error, match=r"is for this machine: they are for aarch64\. Build them here"):
        Model(root)
    status, shown = told("doctor", root)
    assert status == 1
    assert "the kernels are built for aarch64, and this machine is x86-64" in shown
    assert f"neml2-capi build-kernels {root}" in shown


def test_doctor_has_packages_built_again_from_their_sources(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    """A package as AOTInductor writes it tells the command that compiled it."""
    change = asking_for("GLIBCXX_3.4.21")
    root = travelled(artifacts["elasticity"], tmp_path, ".wrapper.so", change, kernels=False)
    assert "build-packages" not in told("doctor", root)[1]
    for package in root.rglob("*.pt2"):
        edit(package, ".wrapper.cpp", lambda text: text + b"// Compile cmd\n// g++ -O1 model.cpp\n")
    shown = told("doctor", root)[1]
    system = f"x86_64-linux-gnu.{platform.libc_ver()[1]}"
    assert f"neml2-capi build-packages {root} --target {system} --output-dir DIR" in shown


def test_doctor_tells_what_packages_ask_for_and_what_there_is(artifacts: Artifacts) -> None:
    root = artifacts["viscoplastic"]
    document = json.loads(told("doctor", "--json", root)[1])
    assert len(document["packages"]) == len(list(root.rglob("*.pt2")))
    for package in document["packages"]:
        assert package["machine"] == "x86_64"
        assert package["instruction_sets"].startswith("AVX2")
        assert (package["glibc"], package["glibcxx"]) == ("2.34", "3.4.30")
        assert package["shim_prefix"] == ""
    here = document["machine"]
    assert here["machine"] == os.uname().machine
    assert here["glibc"] == platform.libc_ver()[1]
    assert here["glibcxx"].startswith("3.4.")
    assert here["instruction_sets"].startswith("x86-64")
    shown = told("doctor", root)[1]
    assert "What packages ask for, and what there is" in shown
    assert "this machine" in shown


def test_doctor_asks_for_no_openmp(artifacts: Artifacts) -> None:
    """Parallel regions run without it."""
    root = artifacts["isotropic_hardening_parallel"]
    assert any(b"libgomp.so.1" in package.read_bytes() for package in root.rglob("*.pt2"))
    document = json.loads(told("doctor", "--json", root)[1])
    assert not any(package["libraries"] for package in document["packages"])


def test_a_prefix_of_torchs_functions_is_named(artifacts: Artifacts, tmp_path: Path) -> None:
    """torch's option shim_symbol_prefix."""
    change = replacing(b"aoti_torch_empty_strided", b"my_aoti_torch_empty_strd")
    root = travelled(artifacts["elasticity"], tmp_path, ".wrapper.so", change, kernels=False)
    assert needs_of(root / "cpu" / "float64" / "elasticity.pt2").shim_prefix == "my_"
    with pytest.raises(Error, match=r'prefix "my_".*shim_symbol_prefix'):
        Model(root)
    status, shown = told("doctor", root)
    assert status == 1
    assert "prefix of torch's functions" in shown
    assert "shim_symbol_prefix" in shown
