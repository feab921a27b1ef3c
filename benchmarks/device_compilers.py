"""Registers, stack and spills of a kernel, by compilers for devices. No device is needed."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from machine import children

KERNEL = "measured"


class NoCompilerError(Exception):
    """A compiler that is not here, and what would bring it."""


@dataclass(frozen=True)
class Cost:
    """Registers of a thread, bytes of stack and of spills, and processor seconds, of a kernel."""

    registers: int
    stack: int
    spills: int
    seconds: float


#: Takes a text that has a kernel of the name `measured`, and an architecture.
Compiler = Callable[[str, str], Cost]


def cuda() -> Compiler:
    """Return the compiler of CUDA C++: nvcc if it is on the path, else NVRTC."""
    return _timed(_by_nvcc) if shutil.which("nvcc") else nvrtc()


def nvrtc() -> Compiler:
    """Return NVRTC: the library that NEML2_CAPI_NVRTC names, or this Python's."""
    known = [Path(name) for name in [os.environ.get("NEML2_CAPI_NVRTC")] if name]
    for folder in sys.path:
        known += sorted(Path(folder).glob("nvidia/*/lib/libnvrtc.so.*"))
    if not known:
        raise NoCompilerError("there is no NVRTC: pip install nvidia-cuda-nvrtc, or use nvcc")
    return _timed(_by_nvrtc(ctypes.CDLL(str(known[0]))))


def _timed(compiler: Callable[[str, Sequence[str]], str]) -> Compiler:
    def cost(text: str, architecture: str) -> Cost:
        began = _spent()
        told = compiler(text, ["--std=c++17", f"-arch={architecture}", "--ptxas-options=-v"])
        return _of_ptxas(told, _spent() - began)

    return cost


def _by_nvcc(text: str, options: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "law.cu"
        source.write_text(text, encoding="utf-8")
        made = source.with_suffix(".cubin")
        return _told(["nvcc", *options, "-cubin", "-o", str(made), str(source)])


def _by_nvrtc(of: ctypes.CDLL) -> Callable[[str, Sequence[str]], str]:
    def told(text: str, options: Sequence[str]) -> str:
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        of.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"law.cu", 0, None, None)
        words = [option.encode() for option in options]
        failed = of.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        of.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        of.nvrtcGetProgramLog(program, log)
        of.nvrtcDestroyProgram(ctypes.byref(program))
        if failed:
            raise RuntimeError(f"NVRTC:\n{log.value.decode()}")
        return log.value.decode()

    return told


def _of_ptxas(told: str, seconds: float) -> Cost:
    found = re.search(
        rf"Function properties for {KERNEL}\b.*?(\d+) bytes stack frame, (\d+) bytes spill stores"
        r".*?Used (\d+) registers",
        told,
        re.DOTALL,
    )
    if not found:
        raise RuntimeError(f"ptxas tells nothing of the kernel {KERNEL}:\n{told}")
    stack, spills, registers = map(int, found.groups())
    return Cost(registers, stack, spills, seconds)


#: What OpenCL's library has and devices have as instructions: nothing is linked here.
_BUILTINS = [f"-D{name}=__builtin_{name}" for name in ("fabs", "sqrt", "floor", "fma")]
_PLACE = "__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x()"


def amd() -> Compiler:
    """Return clang for OpenCL C on gfx90a and others, with the vector registers of both kinds."""
    names = [*(f"clang-{version}" for version in range(22, 13, -1)), "clang"]
    clang = next(filter(shutil.which, names), None)
    if not clang:
        raise NoCompilerError("clang is not on the path: install it")

    def cost(text: str, architecture: str) -> Cost:
        began = _spent()
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "law.cl"
            source.write_text(text, encoding="utf-8")
            made = source.with_suffix(".s")
            command = [clang, "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-O3", "-S"]
            command += ["-target", "amdgcn-amd-amdhsa", f"-mcpu={architecture}", "-nogpulib"]
            command += [*_BUILTINS, f"-Dget_global_id(n)=({_PLACE})", str(source), "-o", str(made)]
            _told(command)
            assembly = made.read_text()
        of = next(k for k in assembly.split("\n  - .")[1:] if f"{KERNEL}.kd" in k)
        total, stack, spilled = (
            int(re.findall(rf"\.{key}: +(\d+)", of)[0])
            for key in ("vgpr_count", "private_segment_fixed_size", "vgpr_spill_count")
        )
        return Cost(total, stack, 4 * spilled, _spent() - began)

    return cost


def _spent() -> float:
    """Count processor seconds, including compilers that are programs."""
    return time.process_time() + children()


def _told(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout + done.stderr
