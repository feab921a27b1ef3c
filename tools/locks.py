"""The locks of capi/ and neml2_capi/, all of which a fork knows; a step of `build.py check`.

python -m tools.locks [ROOT]    print locks that a fork does not know, and what to use
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.process import ROOT, run_check

IN_CPP = re.compile(
    r"\bstd::(?:recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex\b"
    r"|\bstd::(?:once_flag|call_once|condition_variable\w*|atomic_flag|\w+_semaphore|latch|barrier)\b"
    r"|\bpthread_(?:mutex|rwlock|cond|once|spin|barrier|atfork)\w*"
    r"|\bsem_(?:init|wait|post)\b|\bSYS_futex\b"
)
IN_PYTHON = re.compile(
    r"\bthreading\.(?:Lock|RLock|Condition|Semaphore|BoundedSemaphore|Event|Barrier)\b"
)

KINDS = (
    ("capi", (".h", ".cpp"), IN_CPP, "capi/base/locks.h", "locks::Mutex, FreedMutex, Condition"),
    ("neml2_capi", (".py",), IN_PYTHON, "neml2_capi/_ffi/locks.py", "locks.new()"),
)
# The locks themselves, and what systems give them.
OWN = (
    *("capi/base/locks.h", "capi/base/locks.cpp", "neml2_capi/_ffi/locks.py"),
    *("capi/platform/posix.cpp", "capi/platform/linux.cpp"),
)


def findings(root: Path) -> Iterator[str]:
    """Yield each lock that a fork does not know, with its place and what to do."""
    for folder, suffixes, pattern, header, expected in KINDS:
        for file in sorted(file for file in (root / folder).rglob("*") if file.suffix in suffixes):
            place = file.relative_to(root).as_posix()
            if place in OWN:
                continue
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("//")[0]
                if found := pattern.search(code):
                    yield (
                        f"{place}:{number}: {found[0]} is unknown to a fork, whose child may wait "
                        f"for it for ever; expected a lock of {header}. Use {expected}."
                    )


if __name__ == "__main__":
    run_check(findings, ROOT)
