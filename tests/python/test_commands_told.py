"""Commands that files and messages tell: a shell takes them as they stand, whatever the path."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from command_line import answer, command

from neml2_capi import examples
from neml2_capi.plugin import PluginError, _for_another

FOLDER = "it's dri ve"


@pytest.fixture
def steel(tmp_path: Path) -> Path:
    """An artifact in a folder whose name a shell splits, with kernels that are not built."""
    root = tmp_path / FOLDER / "steel"
    shutil.copytree(examples.path("elasticity"), root)
    (file,) = root.glob("kernels/*/kernels.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "objects": []}))
    return root


def after(text: str, start: str) -> list[str]:
    """The words of the command in a text that starts so."""
    rest = text[text.index(start) :].splitlines()[0]
    return shlex.split(rest.removesuffix("."))


def test_a_template_tells_how_to_run_it(tmp_path: Path) -> None:
    for name in ("run", "verify"):
        file = tmp_path / f"{FOLDER}-{name}.toml"
        answer(name, "--template", examples.path("elasticity"), "--output", file)
        told = after(file.read_text(), f"neml2-capi {name}")
        assert told == ["neml2-capi", name, file.name]


def test_the_doctor_tells_how_to_build_kernels(steel: Path) -> None:
    found = json.loads(command("doctor", steel, "--json").stdout)["findings"]
    (mend,) = [each["mend"] for each in found if "build-kernels" in each["mend"]]
    assert after(mend, "neml2-capi build") == ["neml2-capi", "build-kernels", str(steel)]


def test_a_plug_in_tells_how_to_build_kernels(steel: Path) -> None:
    with pytest.raises(PluginError) as raised:
        _for_another(steel, "windows", needs_packages=False)
    expected = ["neml2-capi", "build-kernels", str(steel), "--system", "windows"]
    assert after(str(raised.value), "neml2-capi build") == expected
    with pytest.raises(PluginError) as raised:
        _for_another(steel, "windows", needs_packages=True)
    assert after(str(raised.value), "neml2-capi doctor")[:3] == [
        *expected[:1],
        "doctor",
        str(steel),
    ]
