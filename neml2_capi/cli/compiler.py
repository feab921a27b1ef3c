"""neml2-compile as a process, which ends with the command that runs it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import FrameType

import click

from neml2_capi.kernels.whole import Staging

#: How many seconds neml2-compile has to end if it is stopped.
_TIDYING = 3.0


def run_compiler(
    command: list[str], environment: dict[str, str], staging: Staging | None, output_dir: str
) -> int:
    """Run neml2-compile, which names the folder where its files will be."""
    told = subprocess.PIPE if staging else None
    folders = [str(staging.folder), os.path.relpath(staging.folder)] if staging else []
    compiler = None
    try:
        with _uninterrupted():
            compiler = subprocess.Popen(command, env=environment, stdout=told, text=True)
        for line in compiler.stdout or ():
            for folder in folders:
                line = line.replace(folder, output_dir)
            click.echo(line, nl=False)
        return compiler.wait()
    except BaseException:  # a signal to this process alone, or a pipe that nobody reads
        if compiler:
            _end(compiler)
        raise
    finally:
        if compiler and compiler.stdout:
            compiler.stdout.close()


@contextlib.contextmanager
def terminated_as_by_exit() -> Iterator[None]:
    """A signal to terminate leaves a block as sys.exit() does: processes end, and files go."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Signals wait for the end of a block, in which a process starts that they shall end."""
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    came: list[tuple[int, FrameType | None]] = []
    for number, handler in before.items():
        if main and callable(handler):
            signal.signal(number, lambda *signal: came.append(signal))
    try:
        yield
    finally:
        for number, handler in before.items():
            if main and callable(handler):
                signal.signal(number, handler)
    for which, frame in came[:1]:
        handler = before[signal.Signals(which)]
        assert callable(handler)
        handler(which, frame)


def _end(compiler: subprocess.Popen[str]) -> None:
    """Stop a process, which may tidy up for some seconds."""
    compiler.terminate()
    try:
        compiler.wait(_TIDYING)
    except subprocess.TimeoutExpired:
        compiler.kill()
        compiler.wait()
