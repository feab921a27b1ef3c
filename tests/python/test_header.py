"""The C headers as a manual: the example compiles, and each function says all it must."""

from __future__ import annotations

import re

import pytest
from native import CC, INCLUDE, LINK, PREBUILT, WARNINGS, command, example_of, folder, run

from tools.header import EXPERIMENTAL, STABLE

pytestmark = pytest.mark.native

HEADERS = {name: (INCLUDE / name).read_text() for name in (STABLE, EXPERIMENTAL)}
HEADER = "".join(HEADERS.values())

# The comment before each function.
DOCUMENTED = re.findall(
    r"/\*\*((?:(?!\*/).)*)\*/\s*NEML2_CAPI [^;]*?\b(neml2_\w+)\(", HEADER, flags=re.DOTALL
)
FATAL = set(re.findall(r"NEML2_ERROR_([A-Z]+) = ", HEADER)) - {"ARGUMENT", "MEMORY", "INTERNAL"}


def test_the_example_at_the_top_compiles_as_it_stands() -> None:
    source, program = folder() / "header_example.c", folder() / "header_example"
    source.write_text(example_of(INCLUDE / "neml2_capi.h", "With an installed library"))
    command(CC, "-std=c99", *WARNINGS, f"-I{INCLUDE}", source, "-o", program, *LINK)
    # Hooke's law with E = 200e3 and nu = 0.3: uniaxial stress, and shear.
    lines = run(program, PREBUILT / "elasticity").splitlines()
    xx, yz = zip(
        *(map(float, re.findall(r"-?[\d.]+(?:e-?\d+)?", line)) for line in lines), strict=True
    )
    assert xx == pytest.approx((200, 0), abs=1e-9)
    assert yz == pytest.approx((0, 2e-4 * 200e3 / 1.3), rel=1e-5)


def test_every_function_is_documented_once() -> None:
    declared = re.findall(r"^NEML2_CAPI [^;]*?\b(neml2_\w+)\(", HEADER, flags=re.MULTILINE)
    assert [name for _, name in DOCUMENTED] == declared
    assert len(set(declared)) == len(declared)


@pytest.mark.parametrize(("comment", "name"), DOCUMENTED, ids=[name for _, name in DOCUMENTED])
def test_a_function_says_its_errors_and_its_threads(comment: str, name: str) -> None:
    text = " ".join(line.strip(" *") for line in comment.splitlines())
    end = re.search(r"(?:Errors: ([^.]+)\. )?Threads: (any|one)\.\s*$", text)
    assert end, text
    assert set(end[1].split(", ") if end[1] else []) <= FATAL, "the others go without saying"
    # What is handed out has an owner.
    handed_out = re.search(rf"\b{name}\((?:neml2_\w+|void|const char) \*\*", HEADER)
    if handed_out and not name.endswith("_free"):
        assert re.search(r"[Oo]wned|[Bb]orrowed|\*consumed\*|receives|neml2_model_", text), name
