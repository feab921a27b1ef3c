"""Print what include/neml2_capi.h declares, one function or enumerator a line, in a fixed form.

python tests/abi/declarations.py > tests/abi/symbols.txt     after a change of the ABI that is meant
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "include" / "neml2_capi.h"


def declarations(header: str) -> list[str]:
    """The functions, then the enumerators, of the text of a header, each group sorted."""
    code = re.sub(r"/\*.*?\*/", " ", header, flags=re.DOTALL)
    code = re.sub(r"^\s*#.*$", "", code, flags=re.MULTILINE)
    functions = re.findall(r"NEML2_CAPI\s+([^;{}]*\([^;{}]*\));", code)
    enumerators = [
        entry
        for body in re.findall(r"enum\s*\{(.*?)\}", code, flags=re.DOTALL)
        for entry in body.split(",")
    ]
    tidy = [" ".join(text.split()) for text in functions]
    values = [" ".join(text.split()) for text in enumerators if text.strip()]
    return sorted(tidy, key=function_name) + sorted(values)


def function_name(declaration: str) -> str:
    """The function that a declaration is of; "" for an enumerator."""
    found = re.search(r"(\w+)\s*\(", declaration)
    return found.group(1) if found else ""


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in declarations(HEADER.read_text()))
