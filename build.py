#!/usr/bin/env python3
"""The one entry for people: build, test and try neml2_capi. Needs nothing but Python.

python3 build.py demo              two material models at work, in an environment of their own
python3 build.py demo --compile    the same, compiling the models first
python3 build.py test              the quick tests: no torch, no compiled model
python3 build.py test FILE -k X    some of them; a file or a program in C, C++, Fortran or Python;
                                   what test itself does not know goes to pytest
python3 build.py test --full       all tests of this Python: torch, sanitizers, MPI, the wheel, ...
python3 build.py test --everything the other Pythons, models compiled again, ThreadSanitizer, ...
python3 build.py test --platform manylinux_2_17_aarch64   its wheel and programs, by qemu
python3 build.py models            compile the models of the tests again, if recipes changed
python3 build.py build             the library, the tests and the examples, into build/
python3 build.py wheel             the wheel, into dist/, with its manylinux tag
python3 build.py wheel --platform all   for old C libraries, musl and aarch64, and the sources
python3 build.py bench             the speed, beside NEML2's own runtime; -h tells its options
python3 build.py fuzz [READER]     search for bytes that break a reader, by clang's libFuzzer
python3 build.py generate          renew what is generated from the C headers
python3 build.py docs              renew docs/reference, from the docstrings and the headers
python3 build.py site              the documentation for a browser, into build/site
python3 build.py check             generated files, formatting, lint and types
"""

import argparse
import sys

# Python 3.6 must understand this file and tools/prerequisites.py, which tell the user of an old
# Python what to do.
from tools import prerequisites


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="build.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True

    demo = commands.add_parser("demo")
    demo.add_argument(
        "--compile", action="store_true", dest="compile_first", help="the models, first"
    )
    demo.add_argument("--output", default="demo-output", metavar="DIR", help="where the plot goes")

    test = commands.add_parser("test")
    tiers = test.add_mutually_exclusive_group()
    for tier, told in (
        ("full", "all tests of this Python, with torch, sanitizers and the wheel"),
        ("everything", "all Pythons, models compiled again, and what takes hours"),
    ):
        tiers.add_argument(f"--{tier}", dest="tier", action="store_const", const=tier, help=told)
    test.set_defaults(tier="quick")
    tiers.add_argument(
        "--platform",
        metavar="TAG",
        help="the wheel of another platform under a Python of it: manylinux_2_17_aarch64, by qemu",
    )
    test.add_argument(
        "--interpreters",
        type=int,
        default=1,
        metavar="N",
        help="with --full: test the wheel under all CPythons here, and fail if fewer than N are",
    )

    models = commands.add_parser("models")
    models.add_argument("--examples", action="store_true", help="those of the examples too")
    wheel = commands.add_parser("wheel")
    wheel.add_argument(
        "--platform", metavar="TAG", help="for another one: manylinux_2_17_aarch64, all, ..."
    )
    for name in ("bench", "fuzz"):
        commands.add_parser(name, add_help=False)  # theirs
    for name in ("build", "generate", "docs", "site"):
        commands.add_parser(name)
    check = commands.add_parser("check")
    check.add_argument("--fix", action="store_true", help="mend what can be mended first")
    return top


def main() -> int:
    # `python -m` sets __spec__: somebody wanted the package of this name.
    if __spec__ is not None:
        print(
            "This is build.py of neml2_capi, which hides the package `build` in this folder.\n"
            "To build the wheel:              python3 build.py wheel\n"
            "To build with the package:       cd / && python3 -m build " + prerequisites.ROOT,
            file=sys.stderr,
        )
        return 2
    arguments, others = parser().parse_known_args()
    if arguments.command in ("test", "bench", "fuzz"):
        arguments.others = others
    elif others:
        parser().error("unknown arguments: " + " ".join(others))
    if not prerequisites.met(arguments.command):
        return 1

    from tools import commands
    from tools.process import Failure

    options = vars(arguments)
    command = getattr(commands, options.pop("command"))
    try:
        return int(command(**options))
    except Failure as failure:
        print("\n" + str(failure), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
