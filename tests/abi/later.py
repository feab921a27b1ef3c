"""Write the sources of a later release of the ABI: what is here, with additions.

    later.py FOLDER

There is one function more, one option more, and one field more at the end of two structures.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# For each file: a text, and what takes its place.
ADDITIONS = {
    "include/neml2_capi.h": [
        ("NEML2_ABI_VERSION 1000", "NEML2_ABI_VERSION 1001"),
        ("} neml2_source;", "  int64_t later;\n} neml2_source;"),
        ("} neml2_model_info;", "  int64_t later;\n} neml2_model_info;"),
        (
            "#ifdef __cplusplus\n}\n",
            "NEML2_CAPI int32_t neml2_later(void);\n#ifdef __cplusplus\n}\n",
        ),
    ],
    "include/neml2_capi_experimental.h": [],  # beside the other, which it includes
    "capi/abi/neml2_capi.map": [
        (
            "NEML2_EXPERIMENTAL_1.0 {",
            "NEML2_1.1 { global: neml2_later; } NEML2_1.0;\nNEML2_EXPERIMENTAL_1.0 {",
        ),
    ],
    "capi/abi/error.cpp": [
        (
            "int32_t neml2_abi_version(void) {",
            "int32_t neml2_later(void) { return 7; }\nint32_t neml2_abi_version(void) {",
        ),
    ],
    "capi/model/options.cpp": [
        (
            '{"chunk", &Options::chunk_,',
            '{"later", &Options::chunk_, 0, 9, true, nullptr, {}}, {"chunk", &Options::chunk_,',
        ),
    ],
}


def main() -> None:
    folder = Path(sys.argv[1])
    for source, additions in ADDITIONS.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        for old, new in additions:
            if text.count(old) != 1:
                sys.exit(f"{source} has {text.count(old)} times {old!r}: {__file__} must follow it")
            text = text.replace(old, new)
        target = folder / Path(source).name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
