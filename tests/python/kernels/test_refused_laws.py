"""Laws that kernels cannot take, or torch cannot trace: their messages, and nothing is written."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Model

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402
from neml2_capi.export._lines import called  # noqa: E402
from neml2_capi.export._points import batched, jacobian  # noqa: E402
from neml2_capi.kernels.build import build  # noqa: E402
from neml2_capi.kernels.trace import MOST_EXPRESSIONS  # noqa: E402

pytestmark = pytest.mark.full("it exports graphs with torch")

Law = Callable[[Any], Any]


def exported(law: Law, path: Path, **options: Any) -> Path:
    """A law of a vector of six."""
    options = {"kernels": "only", **options}
    return export.model(law, path, inputs={"x": (6,)}, outputs={"y": (6,)}, **options)


def sorted_(x: Any) -> Any:
    return torch.sort(x)[0]  # the line


def helper(x: Any) -> Any:
    return torch.special.erfcx(x)  # the line


def through_a_helper(x: Any) -> Any:
    return x + helper(x)


def largest(x: Any) -> Any:
    return x * torch.topk(x, 2)[0].sum()  # the line


def chosen_by_a_mask(x: Any) -> Any:
    return x * x[x > 0].sum()  # the line


def nonzero(x: Any) -> Any:
    return x * torch.nonzero(x).sum()  # the line


def distinct(x: Any) -> Any:
    return torch.unique(x)  # the line


def branching(x: Any) -> Any:
    if x[0] > 0:  # the line
        return x
    return -x


def looping(x: Any) -> Any:
    while x.norm() > 1:  # the line
        x = x / 2
    return x


def a_number(x: Any) -> Any:
    return x * x[0].item()  # the line


def a_float(x: Any) -> Any:
    return x * float(x[0])  # the line


def chance(x: Any) -> Any:
    return x + torch.rand(6)  # the line


def dropping_out(x: Any) -> Any:
    return torch.nn.functional.dropout(x, 0.5)  # the line


def through_numpy(x: Any) -> Any:
    return torch.from_numpy(np.sin(x.numpy()))  # the line


def less_accurate(x: Any) -> Any:
    return (x.float() * 2.0).to(x.dtype)  # the line


class _Squared(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        return 2 * context.saved_tensors[0] * gradient


def a_function_of_ones_own(x: Any) -> Any:
    return _Squared.apply(x)  # the line


def added_in_place(x: Any) -> Any:
    x += 1  # the line
    return x


def set_in_place(x: Any) -> Any:
    x[0] = 2.0  # the line
    return x * 2


def a_view_in_place(x: Any) -> Any:
    x[1:3].mul_(2.0)  # the line
    return x


def into_its_argument(x: Any) -> Any:
    return torch.add(x, 1, out=x)  # the line


_TABLE = torch.zeros(6, dtype=torch.float64)


def into_a_table(x: Any) -> Any:
    _TABLE[0] = x[0]  # the line
    return _TABLE * 1.0


def running_greatest(x: Any) -> Any:
    return torch.cummax(x, 0)[0]  # the line


def of_complex_numbers(x: Any) -> Any:
    return torch.fft.fft(x).real  # the line


def mixing_types(x: Any) -> Any:
    return torch.ones(6, 6) @ x  # the line


def without_a_derivative(x: Any) -> Any:
    y = torch.special.gammainc(x, x + 1.0)  # the line
    return y * 2.0


def differentiated_for_one_point_only(x: Any) -> Any:
    y = x.unfold(0, 3, 3).sum(1)  # the line
    return torch.cat([y, x[2:]])


def of_bits(x: Any) -> Any:
    return x * (x.long() & 1)  # the line


def failing(x: Any) -> Any:
    raise KeyError("strian")  # the line


LAWS: dict[Law, str] = {
    sorted_: r"aten\.sort",
    through_a_helper: r"aten\.special_erfcx",
    largest: r"aten\.topk",
    chosen_by_a_mask: r"torch\.where\(mask",
    nonzero: r"torch\.where\(mask",
    distinct: r"torch\.where\(mask",
    branching: r"`if`.*torch\.where\(condition",
    looping: r"`while`.*fixed number of steps",
    a_number: r"Keep it a tensor",
    a_float: r"Keep it a tensor",
    chance: r"depends on chance",
    dropping_out: r"eval\(\) mode",
    through_numpy: r"leaves torch",
    less_accurate: r"computes in float32.*torch\.float64",
    a_function_of_ones_own: r"autograd\.Function",
    added_in_place: r"changes its argument.*x = x \+ 1",
    set_in_place: r"changes its argument.*torch\.stack",
    a_view_in_place: r"changes its argument.*clone",
    into_its_argument: r"changes its argument",
    into_a_table: r"one for all points.*torch\.stack",
    running_greatest: r"aten\.cummax",
    of_complex_numbers: r"aten\._fft",
    mixing_types: r"mixes element types.*double\(\)",
    of_bits: r"aten\.bitwise_and",
    failing: r"KeyError: 'strian'",
}


def the_line(law: Law) -> str:
    """FILE:LINE of the line that is marked in the law, or in what it calls."""
    code = (helper if law is through_a_helper else law).__code__
    text = Path(__file__).read_text().splitlines()
    first = code.co_firstlineno
    marked = [n for n in range(first, first + 4) if text[n - 1].endswith("# the line")]
    return f"{Path(__file__).name}:{marked[0]}: `{text[marked[0] - 1].strip()}" if marked else ""


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.strip("_"))
def test_a_law_is_refused_in_the_words_of_who_wrote_it(law: Law, tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=f"(?s){LAWS[law]}") as told:
        exported(law, tmp_path / "new" / "law")
    assert the_line(law) in str(told.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("law", "told"),
    [
        (without_a_derivative, r"no derivative of igamma: input.*detach\(\)"),
        (differentiated_for_one_point_only, r"aten::unfold_backward works on many points"),
    ],
)
def test_what_torch_cannot_differentiate_is_told_with_its_line(law: Law, told: str) -> None:
    function = functools.partial(called, lambda x: (law(x),))
    with pytest.raises(FatalError, match=f"(?s){told}") as error:
        batched(jacobian(function, [0]), [(6,)], torch.float64)
    assert the_line(law) in str(error.value)


def test_functions_of_torch_that_a_process_wraps_are_not_the_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grad = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *given, **options: grad(*given, **options))
    function = functools.partial(called, lambda x: (without_a_derivative(x),))
    with pytest.raises(FatalError) as error:
        batched(jacobian(function, [0]), [(6,)], torch.float64)
    assert the_line(without_a_derivative) in str(error.value)


def test_a_function_that_neml2_wraps_is_told_with_the_line_of_the_law(tmp_path: Path) -> None:
    pytest.importorskip("neml2")

    def law(x: Any) -> Any:
        return torch.einsum("i,ij->j", x, torch.eye(5, dtype=x.dtype))

    assert torch.einsum.__code__.co_filename.endswith("_guard.py")
    with pytest.raises(FatalError, match=f"{Path(__file__).name}:[0-9]+: `return torch.einsum"):
        exported(law, tmp_path / "law")


def test_a_long_law_is_told_its_longest_line(tmp_path: Path) -> None:
    def law(x: Any) -> Any:
        table = x[:, None] * torch.linspace(0, 1, 400_000, dtype=x.dtype)
        return torch.sin(table).tanh().exp().cos().sum(-1)

    with pytest.raises(FatalError, match=f"(?s)at most {MOST_EXPRESSIONS} .*`return torch"):
        exported(law, tmp_path / "law", derivatives=False)


def test_a_derivative_without_a_kernel_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from neml2_capi.kernels import operators

    monkeypatch.delitem(operators.OPERATORS, "aten.cos")

    def law(x: Any) -> Any:
        y = 2 * x
        return torch.sin(y)

    with pytest.raises(FatalError, match=r"derivative of the law.*aten\.cos.*`return torch\.sin"):
        exported(law, tmp_path / "law")
    exported(law, tmp_path / "law", derivatives=False)
    assert Model(tmp_path / "law").forward({"x": np.ones((2, 6))})["y"].shape == (2, 6)


def test_an_operator_that_works_on_one_point_alone_is_told() -> None:
    """torch would call it for each of the points that are traced, a million of them."""
    from neml2_capi.export._points import batched, jacobian

    with pytest.raises(FatalError, match="no rule by which aten::cummax"):
        batched(jacobian(running_greatest, [0]), [(6,)], torch.float64)


def test_an_earlier_artifact_stays_whole(tmp_path: Path) -> None:
    path = exported(lambda x: 3.0 * x, tmp_path / "law")
    for law in (sorted_, chosen_by_a_mask):
        with pytest.raises(FatalError):
            exported(law, path)
    made = Model(path).forward({"x": np.ones((1, 6))})["y"]
    np.testing.assert_array_equal(made, 3.0)
    assert [p.name for p in tmp_path.iterdir()] == ["law"]


def test_what_cannot_be_opened_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the reason: here a kernel that the library does not find in its object."""
    path = exported(lambda x: 3.0 * x, tmp_path / "law")
    before = (path / "kernels" / "float64" / "kernels.json").read_bytes()

    def damaged(folder: Path, targets: Sequence[str]) -> None:
        build(folder, targets)
        file = folder / "kernels.json"
        document = json.loads(file.read_text())
        document["kernels"].pop()
        file.write_text(json.dumps(document))

    monkeypatch.setattr("neml2_capi.export._artifact.build", damaged)
    with pytest.raises(FatalError, match=r"kernels alone.*_jvp\.pt2 has no kernel"):
        exported(lambda x: 2.0 * x, path)
    assert (path / "kernels" / "float64" / "kernels.json").read_bytes() == before


def test_a_law_on_packages_is_warned_of(tmp_path: Path) -> None:
    """With kernels="auto" all is written, and a warning names the line."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        exported(sorted_, tmp_path / "law", kernels="auto", derivatives=False)
    (words,) = [str(w.message) for w in told if "will run on" in str(w.message)]
    assert "aten.sort" in words
    assert the_line(sorted_) in words
    stored = json.loads((tmp_path / "law" / "kernels" / "float64" / "kernels.json").read_text())
    (missing,) = stored["missing"]
    assert str(Path(__file__).parent) not in missing["reason"]
    x = np.random.default_rng(1).standard_normal((3, 6))
    np.testing.assert_array_equal(Model(tmp_path / "law").forward({"x": x})["y"], np.sort(x))
