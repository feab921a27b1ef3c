"""Files that the command line reads, damaged at every key: one line with the file and the key."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from native import PREBUILT

from neml2_capi import Model
from neml2_capi.cli.commands import neml2_capi as command_line

pytestmark = pytest.mark.numbers

Content = dict[str, Any]
#: In place of each value: of every type, and what no type holds.
NINE: tuple[Any, ...] = (None, True, -1, 10**400, float("nan"), "../x", "a\0b", [[]], {"x": 1})


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of each value in a document; of a list, of its first one."""
    if above:
        yield above
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*above, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*above, 0))


def damaged(document: Content, values: tuple[Any, ...]) -> Iterator[tuple[str, Content]]:
    """The document with one value replaced or removed, and the last name of its place."""
    for place in places(document):
        name = next(str(key) for key in reversed(place) if isinstance(key, str))
        for value in (*values, ...):
            changed = copy.deepcopy(document)
            table: Any = changed
            for key in place[:-1]:
                table = table[key]
            if value == table[place[-1]]:
                continue
            if value is ...:
                del table[place[-1]]
            else:
                table[place[-1]] = value
            yield name, changed


def run(*words: object) -> tuple[int, str]:
    """The status and the text of a command, which never raises."""
    done = CliRunner().invoke(command_line, list(map(str, words)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert "Traceback" not in done.output
    return done.exit_code, done.output


def refused(file: Path, name: str, *words: object) -> bool:
    """Whether a command refuses; then in one line, with the file and the key."""
    status, text = run(*words)
    if status == 0:
        return False
    (line,) = [line for line in text.splitlines() if line.startswith("Error: ")]
    if line.startswith("Error: step "):  # what the law says of a number that it may have
        return False
    assert status in (1, 2) and file.name in line, line
    assert name in line or re.search(rf"{file.name}: [\w.\[\]]+: ", line), (name, line)
    return True


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With two small kernels, so that to compile them takes no time."""
    root = tmp_path_factory.mktemp("a") / "elasticity"
    shutil.copytree(Path(PREBUILT).parents[1] / "neml2_capi" / "examples" / "elasticity", root)
    return root


# ------------------------------------------------------------------------------------------------
# kernels.json
# ------------------------------------------------------------------------------------------------


@pytest.mark.full("files damaged at each key")
@pytest.mark.parametrize("command", ["build-kernels", "plugin"])
def test_damaged_kernels_are_refused_by_the_key(
    artifact: Path, tmp_path: Path, command: str
) -> None:
    root = shutil.copytree(artifact, tmp_path / "elasticity")
    file = root / "kernels" / "float64" / "kernels.json"
    document = json.loads(file.read_text())
    for part in ("inputs", "outputs"):
        document["kernels"][0][part] = document["kernels"][0][part][:1]
    words: list[object] = ["--cc", "false"]
    if command == "plugin":
        words = ["-o", tmp_path / "libx.so"]
    count = 0
    for _, changed in damaged(document, NINE):
        file.write_text(json.dumps(changed))
        status, text = run(command, root, *words)
        count += status != 0
        if status:
            lines = [line for line in text.splitlines() if line.startswith("Error: ")]
            assert len(lines) == 1 and len(text.splitlines()) < 5, text
            assert any(word in text for word in ("kernels", "false", "no kernel")), text
    assert count > 100


# ------------------------------------------------------------------------------------------------
# TOML
# ------------------------------------------------------------------------------------------------

DRIVER: Content = {
    "artifact": str(PREBUILT / "combined_hardening"),
    "dtype": "float64",
    "scheduler": {"device": "cpu", "batch_size": 512, "capacity": 1024, "priority": 1.0},
    "times": {"start": 0.0, "end": 2.0, "steps": 2, "input": "t"},
    "forces": {
        "strain": {
            "xx": {"ramp": {"from": 0.0, "to": 1e-3, "until": 1.0}},
            "yy": {"cycle": {"amplitude": 1e-4, "period": 1.0, "mean": 0.0, "shape": "sine"}},
            "zz": {"points": [[0.0, 0.0], [2.0, 1e-4]]},
        }
    },
    "control": {"stress": {"yz": 0.0, "xz": {"constant": 0.0}, "xy": 0.0}},
    "initial": {"stress": {"xx": 1.0}, "equivalent_plastic_strain": 0.0},
    "parameters": {"E": 150e3},
    "options": {"atol": 1e-8, "miters": 20, "threads": 1, "ls_type": "BACKTRACKING"},
    "step": {"least": 0.5},
    "output": {"file": "x.npz", "format": "npz", "variables": ["stress"], "derivatives": []},
    "plot": {"curves": []},
}


def toml(value: Any) -> str:
    """A value as TOML has it; None is not."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


@pytest.mark.full("files damaged at each key")
def test_a_damaged_file_of_a_run_is_refused_by_the_key(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    accepted = []
    for name, changed in damaged(DRIVER, (10**400, float("nan"), "x", "a\0b", {"x": 1})):
        text = "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in changed.items())
        if "null" in text or "\\udcff" in text:
            continue
        file.write_text(text.replace("\\udcff", "x"))
        if not refused(file, name, "run", file):
            accepted.append(name)
    assert len(accepted) < 60, accepted


TEXTS: dict[str, bytes] = {
    "empty": b"",
    "not UTF-8": b"artifact = '\xff'",
    "a zero byte": b"artifact = 'a\0b'",
    "an escaped zero byte": b'artifact = "a\\u0000b"\ntimes = {end = 1, steps = 1}',
    "deep": b"artifact = " + b"[" * 10**5 + b"]" * 10**5,
    "deep tables": b"a" + b".a" * 10**4 + b" = 1",
    "deep parameters": b"parameters" + b".a" * 10**4 + b" = 1",
    "many digits": b"artifact = 1" + b"0" * 10**4,
    "no end": b"artifact = '''",
    "a huge number of steps": b"times = {end = 1e300, steps = 1000000000000000000}\nartifact = '"
    + os.fsencode(PREBUILT / "combined_hardening")
    + b"'",
}


@pytest.mark.full("many damaged files")
def test_a_damaged_file_of_tests_is_refused_by_the_key(tmp_path: Path) -> None:
    file = tmp_path / "verify.toml"
    curve = {"points": [[0.0, 0.0], [2.0, 1.0]], "atol": 1e9, "at": [1.0], "between": [0.0, 2.0]}
    form = {"expression": "E * strain.xx + c", "rtol": 1e9}
    driver = {key: value for key, value in DRIVER.items() if key not in ("output", "plot")}
    expect = {"stress": {"xx": curve, "yy": form}}
    test = {"name": "x", "constants": {"c": 1.0}, "expect": expect}
    for name, changed in damaged({"test": [test]}, (10**400, "x", {"x": 1})):
        whole = {**driver, **changed}
        file.write_text("\n".join(f"{key} = {toml(value)}" for key, value in whole.items()))
        status, said = run("verify", file)
        found = rf"{file.name}: [\w.\[\]]+: |{file.name}: '{name}'|values differ"
        assert status == 0 or re.search(found, said), (name, said)


@pytest.mark.full("files damaged at each key")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_no_toml_is_one_line(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(text)
    assert refused(file, "", "run", file)
    assert refused(file, "", "bench", PREBUILT / "elasticity", "--scheduler", file)


def test_a_byte_order_mark_is_no_damage(artifact: Path, tmp_path: Path) -> None:
    """Editors of Windows begin a file with it."""
    file = tmp_path / "run.toml"
    assert run("run", "--template", artifact, "--output", file)[0] == 0
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert run("run", file)[0] == 0
    assert (tmp_path / "results.csv").exists()


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for name in ("/dev/zero", str(tmp_path), str(tmp_path / "loop"), "a\0b", "/nowhere/x.toml"):
        status, text = run("run", name)
        assert status in (1, 2) and "Error: " in text, (name, text)
        status, text = run(
            "plugin", PREBUILT / "combined_hardening", "-o", tmp_path / "libx.so", "--mapping", name
        )
        assert status in (1, 2) and "Error: " in text, (name, text)


# ------------------------------------------------------------------------------------------------
# A mapping file
# ------------------------------------------------------------------------------------------------

MAPPING: dict[str, Content] = {
    "material": {"artifact": "'x'", "strain": "'strain'", "stress": "'stress'", "time": "'t'"},
    "state": {"name": "'equivalent_plastic_strain'", "kind": "'scalar'", "statev": "1"},
    "parameter": {"name": "'E'", "props": "1"},
    "option": {"name": "'atol'", "value": "1e-8"},
}
WORDS = (
    "",
    "1",
    "-1",
    "1e999",
    "nan",
    "1,2",
    "'x'",
    "''",
    ".true.",
    "(1,2)",
    "9" * 400,
    "2*3",
    "x",
)


@pytest.mark.full("files damaged at each key")
def test_a_damaged_mapping_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "steel.nml"
    for group, keys in MAPPING.items():
        for key in keys:
            for word in WORDS:
                changed = {**MAPPING, group: {**keys, key: word}}
                file.write_text(
                    "\n".join(
                        f"&{name} {', '.join(f'{k} = {v}' for k, v in values.items())} /"
                        for name, values in changed.items()
                    )
                )
                status, text = run(
                    "plugin",
                    PREBUILT / "combined_hardening",
                    "--mapping",
                    file,
                    "-o",
                    tmp_path / "libx.so",
                )
                assert status in (0, 1), (group, key, word, text)
                assert status == 0 or text.count("Error: ") == 1, text
    for content in (b"\xff&material /", b"&a" * 10**5, b"&material x = " + b"(" * 10**5 + b" /"):
        file.write_bytes(content)
        status, text = run(
            "plugin", PREBUILT / "combined_hardening", "--mapping", file, "-o", tmp_path / "libx.so"
        )
        assert status == 1 and "steel.nml" in text, text


# ------------------------------------------------------------------------------------------------
# metadata.json
# ------------------------------------------------------------------------------------------------


@pytest.mark.full("files damaged at each key")
@pytest.mark.parametrize("command", ["inspect", "doctor", "umat", "run"])
def test_damaged_metadata_is_one_line(artifact: Path, tmp_path: Path, command: str) -> None:
    root = shutil.copytree(artifact, tmp_path / "elasticity")
    file = root / "metadata.json"
    document = json.loads(file.read_text())
    kernels = root / "kernels" / "float64" / "kernels.json"
    free = json.loads(kernels.read_text())
    kernels.write_text(json.dumps({**free, "metadata_checksum": None}))
    words: list[object] = ["--template"] if command == "run" else []
    for name, changed in damaged(document, (None, 10**400, "\udcff", [[]], {"x": 1})):
        file.write_text(json.dumps(changed))
        status, text = run(command, *words, root)
        assert status in (0, 1), (name, text)


# ------------------------------------------------------------------------------------------------
# Processes
# ------------------------------------------------------------------------------------------------


def process(*words: object, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "neml2_capi.cli", *words]
    return subprocess.Popen(
        [os.fsencode(str(w)) if not isinstance(w, bytes) else w for w in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.mark.full("files damaged at each key")
def test_a_path_that_is_no_utf_8_is_one_line(artifact: Path, tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff\xfe"
    shutil.copytree(artifact, os.fsdecode(odd))
    for words in (
        ["inspect"],
        ["doctor"],
        ["run", "--template"],
        ["build-kernels", "--cc", "false"],
    ):
        for path in (odd, odd + b"x"):
            _, errors = process(*words, path).communicate()
            assert b"Traceback" not in errors, errors


def test_a_reader_that_leaves_is_no_error(artifact: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "neml2_capi.cli", "inspect", "--json", str(artifact)],
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    assert b"Traceback" not in done.stderr and done.returncode == 1


@pytest.mark.full("compiles kernels")
def test_two_builders_of_one_artifact_lose_nothing(artifact: Path, tmp_path: Path) -> None:
    root = shutil.copytree(artifact, tmp_path / "elasticity")
    file = root / "kernels" / "float64" / "kernels.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "objects": []}))
    targets = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v2"]
    builders = [process("build-kernels", root, "--target", target) for target in targets]
    for builder in builders:
        _, errors = builder.communicate()
        assert builder.returncode == 0, errors
    document = json.loads((root / "kernels" / "float64" / "kernels.json").read_text())
    assert {*targets} <= {entry["target"] for entry in document["objects"]}
    with Model(root) as model:
        assert model.forward({"strain": [1e-3, 0, 0, 0, 0, 0]})["stress"][0] > 0
    assert not list(root.rglob(".*.lock"))
