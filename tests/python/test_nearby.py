"""What a user may pass instead of an artifact: a folder above or below it, a file of it."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from neml2_capi import FatalError, Model, examples


@pytest.fixture
def art(tmp_path: Path) -> Path:
    """A folder in which only art/E is an artifact."""
    shutil.copytree(examples.path("elasticity"), tmp_path / "art" / "E")
    return tmp_path / "art"


@pytest.mark.parametrize("above", ["art", "."])
def test_a_folder_above_an_artifact_is_told_where_it_is(art: Path, above: str) -> None:
    with pytest.raises(FatalError) as error:
        Model(art.parent / above)
    assert f"There is an artifact in {art / 'E'}: pass that path" in str(error.value)


def test_all_artifacts_of_a_folder_are_named(art: Path) -> None:
    shutil.copytree(art / "E", art / "F")
    with pytest.raises(FatalError) as error:
        Model(art)
    assert f"There are artifacts in {art / 'E'}, {art / 'F'}" in str(error.value)


@pytest.mark.parametrize("below", ["kernels", "kernels/float64"])
def test_a_folder_of_an_artifact_is_told_where_it_begins(art: Path, below: str) -> None:
    with pytest.raises(FatalError) as error:
        Model(art / "E" / below)
    assert f"There is an artifact in {art / 'E'}: pass that path" in str(error.value)


def test_a_file_of_an_artifact_is_told_where_it_belongs(art: Path) -> None:
    with pytest.raises(FatalError) as error:
        Model(art / "E" / "kernels" / "float64" / "kernels.json")
    assert f"There is an artifact in {art / 'E'}: pass that path" in str(error.value)


def test_a_zip_is_no_folder(art: Path) -> None:
    with zipfile.ZipFile(art / "E.zip", "w") as file:
        file.write(art / "E" / "metadata.json")
    with pytest.raises(FatalError) as error:
        Model(art / "E.zip")
    assert "E.zip is no artifact, which is a folder" in str(error.value)
    assert f"There is an artifact in {art / 'E'}" in str(error.value)


def test_a_folder_far_from_any_artifact_is_not_told_of_one(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match="Pass the folder that neml2-compile wrote"):
        Model(tmp_path)


def test_an_artifact_of_another_element_type_is_told_how_to_open_it(art: Path) -> None:
    (art / "E" / "kernels" / "float64").rename(art / "E" / "kernels" / "float32")
    with pytest.raises(FatalError, match=r'Present: cpu/float32\. Open it with dtype="float32"'):
        Model(art / "E")


def test_sparse_and_complex_inputs_are_told_what_to_pass() -> None:
    model = Model(examples.path("elasticity"))
    with pytest.raises(FatalError, match=r"'strain'.*pass its real part, array\.real"):
        model.forward({"strain": np.zeros((2, 6), complex)})
