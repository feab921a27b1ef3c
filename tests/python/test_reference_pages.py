"""docs/reference has every public name of the package, and every command with its options."""

from __future__ import annotations

import ast
import pkgutil
import re

import pytest
from conftest import ROOT

import neml2_capi
from neml2_capi.cli.commands import neml2_capi as command

pytestmark = pytest.mark.native

PYTHON = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
#: Rooms that users do not import.
INSIDE = ("artifact", "cli", "header", "kernels")
MODULES = sorted(
    module.name
    for module in pkgutil.iter_modules(neml2_capi.__path__)
    if not module.name.startswith("_") and module.name not in INSIDE
)


#: What these export is listed by its name alone.
ALSO_OF_THE_PACKAGE = ("driver", "errors", "graph", "model", "operators", "sweeps")


def exports(module: str) -> list[str]:
    """The __all__ of a module, which may need what is not installed."""
    folder = ROOT / "neml2_capi" / module
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if ast.unparse(target) == "__all__":
                return list(ast.literal_eval(node.value))
    raise AssertionError(f"{file} has no __all__")


def headings() -> set[str]:
    found: list[str] = re.findall(r"^#{2,3} (\S.*)$", PYTHON, re.MULTILINE)
    return {heading.removeprefix("neml2_capi.") for heading in found}


@pytest.mark.parametrize("name", neml2_capi.__all__)
def test_what_the_package_exports_is_in_the_reference(name: str) -> None:
    told = headings() | {"__version__"}
    assert name in told


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_exports_is_in_the_reference(module: str) -> None:
    """By its own heading; or by the package's, for what stands there too."""
    told = headings()
    short = told if module in ALSO_OF_THE_PACKAGE else set()
    lacking = [n for n in exports(module) if f"{module}.{n}" not in told and n not in short]
    assert not lacking, f"tools/python_reference.py leaves out {', '.join(lacking)} of {module}"


def test_no_parameter_is_told_with_the_type_of_another() -> None:
    assert not re.search(r"`times` \(Model\)|`order` \(Shear\)", PYTHON)


@pytest.mark.parametrize("name", command.list_commands(None))  # type: ignore[arg-type]
def test_a_command_is_on_the_page_with_all_its_options(name: str) -> None:
    found = command.get_command(None, name)  # type: ignore[arg-type]
    assert found is not None
    _, _, rest = COMMANDS.partition(f"## neml2-capi {name}\n")
    section = rest.partition("\n## ")[0]
    options = [option for option in found.params if option.param_type_name == "option"]
    for option in options:
        line = re.search(rf"^- `[^`]*{re.escape(option.opts[-1])}\b[^`]*`: (.+)$", section, re.M)
        assert line, f"{name} {option.opts[-1]} has no help, or the page is stale"


def test_the_overview_names_every_command() -> None:
    overview = (ROOT / "docs" / "overview.md").read_text(encoding="utf-8")
    for name in command.list_commands(None):  # type: ignore[arg-type]
        assert f"| `neml2-capi {name} " in overview, name
