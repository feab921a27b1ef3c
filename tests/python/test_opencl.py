"""Models on OpenCL: kernels of a text on a device, arrays of the host; here the processor's."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from native import PREBUILT, run
from states import Array

from neml2_capi import ConvergenceError, FatalError, Model

pytestmark = pytest.mark.numbers

#: Hooke's law, sigma = E ((1 - nu) / 2) (trace(eps) I + 2 eps), of no artifact that was compiled.
HOOKE = """
#pragma OPENCL FP_CONTRACT OFF
kernel void neml2_law(long points, global const double *in, long first, long point, long across,
    global const double *E, long first_of_E, long point_of_E, long across_of_E,
    global double *out, long first_out, long point_out, long across_out, global double *tangent,
    global int *reports, global double *norms, global const int *summary, long until,
    long derivatives,
    double atol, double rtol, double divtol, long miters) {
  const long p = get_global_id(0);
  if (p >= points || (summary && summary[0] < until)) return;
  double strain[6];
  for (int i = 0; i < 6; ++i) strain[i] = in[first + p * point + i * across];
  const double modulus = E[first_of_E + p * point_of_E], lambda = 0.5 * modulus;
  const double trace = strain[0] + strain[1] + strain[2];
  const int failed = isnan(strain[0]);
  for (int i = 0; i < 6; ++i) {
    if (out && !(summary && failed))
      out[first_out + p * point_out + i * across_out] =
          2 * lambda * strain[i] + (i < 3 ? lambda * trace : 0);
    for (int j = 0; j < 6 && tangent; ++j)
      tangent[(6 * i + j) * points + p] = (i == j ? 2 * lambda : 0) + (i < 3 && j < 3 ? lambda : 0);
  }
  reports[p] = failed ? 2 : 0;
  reports[points + p] = 3;
  if (norms) norms[p] = 0.5;
  if (norms) norms[points + p] = 0.125;
}
"""


def hooke(strain: Array, E: Array) -> Array:
    """The law, with a row for each point."""
    trace = strain[:, :3].sum(axis=1, keepdims=True)
    stress = E[:, None] * strain
    stress[:, :3] += 0.5 * E[:, None] * trace
    return stress


def with_text(root: Path, text: str = HOOKE, line: str = "") -> Path:
    """An artifact of elasticity, with this text for devices."""
    shutil.copytree(PREBUILT / "elasticity", root)
    checksum = zlib.crc32((root / "metadata.json").read_bytes())
    told = f"// neml2_capi 5: 6 inputs, 1 parameters, 6 outputs, float64, metadata {checksum}"
    (root / "kernels/float64/device.cl").write_text(f"{line or told}\n{text}")
    return root


@pytest.fixture(scope="module", autouse=True)
def cache_of_pocl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """PoCL's own cache, whose place it asks for once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POCL_CACHE_DIR", str(tmp_path_factory.mktemp("pocl")))
        yield


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of caches of the test's own; the test is skipped without a device."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    try:
        Model(with_text(tmp_path / "tried"), device="opencl")
    except FatalError as error:
        if "OpenCL" not in str(error):
            raise
        pytest.skip("OpenCL has no device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    shutil.rmtree(tmp_path / "caches")
    return tmp_path / "caches/neml2_capi/device-programs"


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model(with_text(tmp_path / "artifact"), device="opencl:0")


def test_a_model_says_where_it_runs(tmp_path: Path) -> None:
    root = with_text(tmp_path / "artifact")
    given = (None, "cpu", "opencl", "opencl:0")
    assert [Model(root, device=each).device for each in given] == ["cpu"] * 2 + ["opencl:0"] * 2


def strains(points: int) -> Array:
    return np.random.default_rng(points).normal(size=(points, 6))


@pytest.mark.parametrize("points", [1, 2, 63, 64, 65, 1000, 9001])
def test_arrays_of_the_host_go_there_and_back(model: Model, points: int) -> None:
    strain = strains(points)
    E = np.random.default_rng(1).uniform(1, 2, size=points)
    stress = model.forward({"strain": strain}, {"E": E})["stress"]
    np.testing.assert_allclose(stress, hooke(strain, E), rtol=1e-14)


def test_a_parameter_is_live(model: Model) -> None:
    strain = strains(4)
    for E in (1.0, 3.0):
        model["E"] = E
        expected = hooke(strain, np.full(4, E))
        np.testing.assert_allclose(model.forward({"strain": strain})["stress"], expected)


@pytest.mark.parametrize("chunk", [0, 1, 7, 64])
def test_batches_change_nothing(model: Model, chunk: int) -> None:
    strain = strains(100)
    model["E"] = 2.0
    expected = model.forward({"strain": strain})["stress"]
    model.options["chunk"] = chunk
    np.testing.assert_array_equal(model.forward({"strain": strain})["stress"], expected)


@pytest.mark.parametrize("points", [70, 9001])
def test_derivatives_are_entries_of_the_tangent_and_their_products(
    model: Model, points: int
) -> None:
    strain, E = strains(points), np.ones(points)
    model["E"] = 1.0
    block = model.jacobian({"strain": strain})[1]["stress"]["strain"]
    expected = hooke(np.eye(6), np.ones(6)).T
    np.testing.assert_array_equal(block, np.broadcast_to(expected, (points, 6, 6)))
    products = model.jvp({"strain": strain}, {"strain": strain})[1]["stress"]
    np.testing.assert_allclose(products, hooke(strain, E), rtol=1e-13, atol=1e-13)
    pulled = model.vjp({"strain": strain}, {"stress": strain})[1]["strain"]
    np.testing.assert_allclose(pulled, hooke(strain, E), rtol=1e-13, atol=1e-13)


def test_the_kernel_reports_of_each_point(model: Model) -> None:
    strain = strains(5)
    strain[2, 0] = np.nan  # the kernel says not converged, and it was given a NaN
    strain[3, 5] = np.inf
    outputs, report = model.evaluate({"strain": strain})
    assert report["status"].tolist() == [0, 0, 1, 1, 0]
    assert report["iterations"].tolist() == [3] * 5
    assert report["residual_norm"].tolist() == [0.5] * 5
    assert np.isnan(outputs["stress"][2]).all()
    assert np.isfinite(outputs["stress"][[0, 1, 4]]).all()


@pytest.mark.parametrize(
    ("norm", "told"), [("0.5", ": reduce the step, or raise miters."), ("NAN", " Reduce the step.")]
)
def test_points_that_failed_are_told_what_helps_on_a_device(
    tmp_path: Path, norm: str, told: str
) -> None:
    """Neither rescue nor another line search, which are of the processor."""
    text = HOOKE.replace("isnan(strain[0])", "strain[0] > 1").replace("= 0.5;", f"= {norm};")
    model = Model(with_text(tmp_path / "artifact", text), device="opencl:0")
    with pytest.raises(ConvergenceError, match="did not converge") as caught:
        model.forward({"strain": np.full((2, 6), 2.0)})
    assert str(caught.value).endswith(told)


def test_what_a_text_does_not_give_is_refused_by_name(model: Model, tmp_path: Path) -> None:
    if model.parameter_derivatives:
        with pytest.raises(FatalError, match="language of the device that derive with respect to"):
            model.param_jacobian({"strain": strains(1)})
    with pytest.raises(FatalError, match="leave it 0"):
        Model(tmp_path / "artifact", device="opencl", runtime="builtin")


def test_an_artifact_without_a_text_names_the_command(tmp_path: Path) -> None:
    root = with_text(tmp_path / "artifact")
    (root / "kernels/float64/device.cl").unlink()
    with pytest.raises(FatalError, match="neml2-capi build-kernels ARTIFACT --target opencl"):
        Model(root, device="opencl")


def test_a_text_of_another_model_is_refused(tmp_path: Path) -> None:
    line = "// neml2_capi 5: 7 inputs, 1 parameters, 6 outputs, float64, metadata 1"
    root = with_text(tmp_path / "artifact", line=line)
    with pytest.raises(FatalError, match="are not of this model: the first line is not"):
        Model(root, device="opencl")


def test_a_text_that_does_not_compile_has_the_log_of_the_compiler(tmp_path: Path) -> None:
    root = with_text(tmp_path / "artifact", text="kernel void neml2_law(long x) { nothing; }")
    with pytest.raises(FatalError, match=r"(?s)do not compile for .*nothing.*build-kernels"):
        Model(root, device="opencl")


def test_a_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    root = with_text(tmp_path / "artifact")
    with pytest.raises(FatalError, match="There is no device opencl:99: OpenCL has"):
        Model(root, device="opencl:99")


def test_a_compiled_program_is_kept_and_a_damaged_one_made_again(
    tmp_path: Path, caches: Path
) -> None:
    root, strain = with_text(tmp_path / "artifact"), strains(3)
    first = Model(root, device="opencl").forward({"strain": strain})["stress"]
    (kept,) = caches.iterdir()
    whole = kept.read_bytes()
    written = kept.stat().st_mtime_ns
    Model(root, device="opencl")
    assert kept.stat().st_mtime_ns == written
    for damaged in (whole[:-1], b"", whole[:64], whole[:70] + b"?" + whole[71:]):
        kept.write_bytes(damaged)
        again = Model(root, device="opencl").forward({"strain": strain})["stress"]
        np.testing.assert_array_equal(again, first)
        assert kept.read_bytes() != damaged
    assert list(caches.iterdir()) == [kept]  # no draft is left


def test_a_binary_that_the_driver_refuses_is_made_again(tmp_path: Path, caches: Path) -> None:
    root = with_text(tmp_path / "artifact")
    Model(root, device="opencl")
    (kept,) = caches.iterdir()
    strange = b"no program"
    kept.write_bytes(hashlib.sha256(strange).hexdigest().encode() + strange)
    model = Model(root, device="opencl")
    assert np.isfinite(model.forward({"strain": strains(3)})["stress"]).all()
    assert strange not in kept.read_bytes()


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    model = Model(with_text(tmp_path / "artifact"), device="opencl")
    assert np.isfinite(model.forward({"strain": strains(3)})["stress"]).all()


def test_a_machine_without_opencl_says_what_to_install(tmp_path: Path) -> None:
    root = with_text(tmp_path / "artifact")
    program = f"""
from neml2_capi import FatalError, Model
try:
    Model({str(root)!r}, device="opencl")
except FatalError as error:
    print(error)
"""
    told = run(sys.executable, "-c", program, NEML2_CAPI_OPENCL=str(tmp_path / "missing.so"))
    assert "OpenCL cannot be used" in told
    assert "pocl-opencl-icd" in told


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_child_of_a_fork_is_told_that_it_has_no_driver(model: Model) -> None:
    strain = strains(3)
    model.forward({"strain": strain})
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            try:
                model.forward({"strain": strain})
            except FatalError as error:
                status = 0 if "was forked" in str(error) else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_ten_thousand_calls_give_all_memory_back(model: Model) -> None:
    strain = strains(16)
    call = model.bind({"strain": strain}, derivatives=True)
    call()
    before = resident()
    for _ in range(10_000):
        call()
    assert resident() - before < 4 << 20


def test_models_that_are_closed_give_all_memory_back(tmp_path: Path) -> None:
    root, strain = with_text(tmp_path / "artifact"), strains(100)
    before = 0
    for cycle in range(60):
        with Model(root, device="opencl") as model:
            model.forward({"strain": strain})
        if cycle == 10:
            before = resident()
    assert resident() - before < 2 << 20


def resident() -> int:
    """The memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_law_under_a_hypothesis_is_evaluated_on_the_device(tmp_path: Path) -> None:
    """Kernels of the processor were taken, whose law is another one here."""
    model = Model(with_text(tmp_path / "artifact"), device="opencl:0", hypothesis="plane_stress")
    model["E"] = 2.0
    strain = strains(100)[:, :3]
    outputs, report = model.evaluate({"strain": strain})
    trace = strain[:, :2].sum(axis=1) * 2 / 3  # of the strain whose stress zz vanishes
    expected = 2.0 * strain
    expected[:, :2] += trace[:, np.newaxis]
    np.testing.assert_allclose(outputs["stress"], expected, rtol=1e-9, atol=1e-9)
    assert not report["status"].any() and (report["iterations"] >= 3).all()
    along = model.jvp({"strain": strain}, {"strain": strain})[1]["stress"]
    np.testing.assert_allclose(along, expected, rtol=1e-9, atol=1e-9)
