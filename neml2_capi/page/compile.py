"""A law in C++ to WebAssembly, by zig or by a clang with its linker."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from neml2_capi._ffi.refusals import Refusal
from neml2_capi.artifact.compilers import run

#: Two numbers at a time, and no C library. WebAssembly has no product that is fused with a sum.
_FLAGS = (
    *("-target", "wasm32-freestanding", "-std=c++17", "-O2", "-msimd128"),
    *("-fno-exceptions", "-fno-rtti", "-nostdlib"),
    *("-fno-builtin-memset", "-fno-builtin-memcpy", "-Wl,--no-entry", "-Wl,--strip-all"),
)
#: Bytes of the stack for all but arrays.
_STACK = 262144
#: Arrays of a function, which have constant sizes.
_ARRAYS = re.compile(r"\w (\w+\[\d+\](?:, \w+\[\d+\])*);")
_REMEDY = "install it: python3 -m pip install ziglang; or name a clang that has wasm-ld with --cc"


class CompileError(Refusal):
    """WebAssembly was not made: which compiler, what it said, and what to do."""


def compiled(law: str, cc: str = "") -> bytes:
    """The module of a law, the text of `neml2-capi header` with the namespace `law`.

    Raises
    ------
    CompileError
        There is no compiler, or it fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "law.hpp").write_text(law, encoding="utf-8")
        shutil.copyfile(Path(__file__).with_name("law.cpp"), folder / "law.cpp")
        stack = f"-Wl,-z,stack-size={_stack(law)}"
        command = [*_compiler(cc), *_FLAGS, stack, "law.cpp", "-o", "law.wasm"]
        run(command, "law.wasm", _REMEDY, CompileError, folder)
        return (folder / "law.wasm").read_bytes()


def _stack(law: str) -> int:
    """Return the bytes of the stack: twice what arrays take, which inlining may double."""
    sizes = (re.findall(r"\[(\d+)\]", arrays) for arrays in _ARRAYS.findall(law))
    return _STACK + 16 * sum(int(size) for each in sizes for size in each)


def _compiler(cc: str) -> list[str]:
    if cc:
        return shlex.split(cc)
    if not importlib.util.find_spec("ziglang"):
        raise CompileError(f"a page is compiled by zig, which is not installed; {_REMEDY}")
    return [sys.executable, "-m", "ziglang", "c++"]
