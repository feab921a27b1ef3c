"""What every Python test shares: the installed package, and compiled models by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import neml2_capi

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("models", "python/kernels")]

import compile as models  # noqa: E402  (tests/models is no package)
from device_setup import find_devices  # noqa: E402
from kernel_setup import native_target  # noqa: E402
from native import FOREIGN, PREBUILT  # noqa: E402
from recipes import RECIPES  # noqa: E402
from running import HEAD, Write  # noqa: E402

pytest_plugins = ["tiers", "kernel_setup", "foreign"]
find_devices()


@pytest.fixture(autouse=True, scope="session")
def away_from_the_checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Python that a test starts finds the package of the folder that it is started in first."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("away"))
    yield
    os.chdir(before)


def compiled(name: str) -> Path:
    """A folder of tests/models/compile.py, mostly from the archive; else the test is skipped."""
    if FOREIGN:
        pytest.skip(models.NO_PACKAGES)
    try:
        return models.made(name)
    except models.NotCompiledError as error:
        pytest.skip(str(error))


class Artifacts(Mapping[str, Path]):
    """Artifact roots by the name of the recipe in tests/models/compile.py."""

    def __getitem__(self, name: str) -> Path:
        prebuilt = PREBUILT / name
        if prebuilt.is_dir():
            return prebuilt
        try:
            if FOREIGN:
                return models.for_another_machine(name, native_target())
            return models.artifact(name)
        except models.NotCompiledError as error:
            pytest.skip(str(error))

    def __iter__(self) -> Iterator[str]:
        return iter(RECIPES)

    def __len__(self) -> int:
        return len(RECIPES)


@pytest.fixture(scope="session")
def artifacts() -> Artifacts:
    return Artifacts()


@pytest.fixture(scope="session")
def graphs() -> Path:
    """The packages of tests/models/graphs.py."""
    return compiled("graphs")


@pytest.fixture(scope="session")
def signatures() -> Path:
    """The packages of tests/models/signatures.py."""
    return compiled("signatures")


@pytest.fixture(scope="session")
def exported() -> Path:
    """What tests/models/exports.py writes."""
    return compiled("exports")


@pytest.fixture(scope="session")
def packages() -> Path:
    """The packages of tests/models/operators.py, which call operators of the host."""
    return compiled("operators")


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
    return compiled("surrogate") / "surrogate"


@pytest.fixture
def model(artifacts: Artifacts) -> neml2_capi.Model:
    return neml2_capi.Model(artifacts["elasticity"])


@pytest.fixture
def viscoplastic(artifacts: Artifacts) -> neml2_capi.Model:
    return neml2_capi.Model(artifacts["viscoplastic"])


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "alone"
    folder.mkdir()
    return folder


@pytest.fixture
def write_run(artifacts: Artifacts, tmp_path: Path) -> Write:
    """Writes a file of `neml2-capi run` for an artifact, with the times of HEAD."""

    def written(body: str, name: str = "viscoplastic", head: str = HEAD) -> Path:
        (tmp_path / "artifact").unlink(missing_ok=True)
        (tmp_path / "artifact").symlink_to(artifacts[name])
        file = tmp_path / "drive.toml"
        file.write_text(head.format(artifact="artifact") + body)
        return file

    return written
