"""What every Python test shares: the installed package, and compiled models by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from compiling import skip_unless_allowed

import neml2_capi

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "models"))

import compile as models  # noqa: E402  (tests/models is no package)

PREBUILT = ROOT / "examples" / "artifacts"


def pytest_configure() -> None:
    package = Path(neml2_capi.__file__).resolve()
    if "site-packages" not in package.parts or package.is_relative_to(ROOT / "neml2_capi"):
        raise pytest.UsageError(
            f"the tests are for the installed package, but neml2_capi is {package.parent}; "
            "install it first: python3 build.py test"
        )


@pytest.fixture(autouse=True, scope="session")
def away_from_the_checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Python that a test starts finds the package of the folder that it is started in first."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("away"))
    yield
    os.chdir(before)


class Artifacts(Mapping[str, Path]):
    """Artifact roots by the name of the recipe in tests/models/compile.py.

    The two examples are prebuilt. The others are compiled on first use, which needs neml2 and
    torch; with NEML2_CAPI_COMPILE=0, a test that uses one is skipped.
    """

    def __getitem__(self, name: str) -> Path:
        prebuilt = PREBUILT / name
        if prebuilt.is_dir():
            return prebuilt
        if name in models.RECIPES:
            skip_unless_allowed(name)
        return models.artifact(name)

    def __iter__(self) -> Iterator[str]:
        return iter(models.RECIPES)

    def __len__(self) -> int:
        return len(models.RECIPES)


@pytest.fixture(scope="session")
def artifacts() -> Artifacts:
    return Artifacts()


@pytest.fixture(scope="session")
def graphs() -> Path:
    """The packages of tests/models/graphs.py."""
    skip_unless_allowed("the graphs")
    return models.graphs()


@pytest.fixture(scope="session")
def signatures() -> Path:
    """The packages of tests/models/signatures.py."""
    skip_unless_allowed("the signatures")
    return models.signatures()


@pytest.fixture(scope="session")
def exported() -> Path:
    """What tests/models/exports.py writes."""
    pytest.importorskip("torch")
    skip_unless_allowed("the laws")
    return models.exports()


@pytest.fixture(scope="session")
def packages() -> Path:
    """The packages of tests/models/operators.py, which call operators of the host."""
    pytest.importorskip("torch")
    skip_unless_allowed("the packages")
    return models.operators()


@pytest.fixture
def register() -> Iterator[Callable[..., str]]:
    """register_operator(), undone at the end."""
    names: list[str] = []

    def registered(schema: str, function: Callable[..., Any]) -> str:
        names.append(neml2_capi.register_operator(schema, function))
        return names[-1]

    yield registered
    for name in names:
        with suppress(neml2_capi.UnknownNameError):  # the test did
            neml2_capi.unregister_operator(name)


@pytest.fixture(scope="session")
def surrogate() -> Path:
    """The artifact of examples/surrogate."""
    pytest.importorskip("torch")
    skip_unless_allowed("the surrogate")
    return models.surrogate()


@pytest.fixture
def model(artifacts: Artifacts) -> neml2_capi.Model:
    return neml2_capi.Model(artifacts["elasticity"])


@pytest.fixture
def viscoplastic(artifacts: Artifacts) -> neml2_capi.Model:
    return neml2_capi.Model(artifacts["viscoplastic"])
