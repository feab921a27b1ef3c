"""The page of a law in a browser: its curves are drive()'s, and everybody can use it."""

from __future__ import annotations

import base64
import csv
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from native import ROOT
from patience import PATIENCE

from neml2_capi import Model, drive, examples
from neml2_capi.page import PageError, make
from neml2_capi.page.compile import CompileError, compiled

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.platforms import cross_environment, zig

UNIAXIAL = {"stress": "uniaxial"}
LAWS = ("elasticity", "isotropic_hardening", "chaboche")
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
in_browser = pytest.mark.full("compiles laws to WebAssembly, and needs a browser")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    cc = f"{zig(cross_environment())} c++"
    for law in LAWS:
        make(examples.path(law), folder / f"{law}.html", cc=cc)
    return folder


@pytest.fixture(scope="module")
def browser(pages: Path) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    if not BROWSER or not DRIVER:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(pages)})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield opened
    opened.quit()


def wait_until(browser: Any, holds: Callable[[], bool]) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, PATIENCE).until(lambda _: holds())


def show(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    wait_until(browser, lambda: browser.execute_script("return globalThis.neml2 !== undefined"))


def move(browser: Any, control: str, value: float) -> float:
    """Move a slider, and return the value that it then has."""
    script = """
        const slider = document.getElementById(arguments[0] + "-slider");
        slider.value = arguments[1];
        slider.dispatchEvent(new Event("input"));
        requestAnimationFrame(() => requestAnimationFrame(arguments[2]));
    """
    browser.execute_async_script(script, control, value)
    return float(browser.execute_script(f"return document.getElementById('{control}').value"))


def rows_of(browser: Any, test: str) -> dict[str, np.ndarray[Any, Any]]:
    text = browser.execute_script(f"return neml2.csv(neml2.results.{test})")
    return columns(text.splitlines())


def columns(lines: list[str]) -> dict[str, np.ndarray[Any, Any]]:
    names, *rows = csv.reader(lines)
    return dict(zip(names, np.array(rows, float).T, strict=True))


def driven(
    law: Path,
    rows: dict[str, Any],
    test: str,
    parameters: Mapping[str, float],
    creep: float,
    forces: Mapping[str, float],
) -> Any:
    """Return the results of drive() for a test's loading; `creep` is the stress of that test."""
    times = rows["time"]
    with Model(law) as model:
        strain: dict[str, Any] = {"xx": rows["strain.xx"]}
        control: dict[str, Any] | None = UNIAXIAL
        if test == "shear":
            strain, control = {"xy": rows["strain.xy"]}, None
        if test == "creep":
            held = creep * np.minimum(times / times[10], 1)  # loaded in ten steps
            strain, control = {}, {"stress": {"uniaxial": held}}
        loads = {"strain": strain, **forces}
        given = drive(model, times, loads, control=control, parameters=parameters)
        return {name: given[name] for name in ("strain", *model.outputs.names)}


def check(
    browser: Any,
    law: Path,
    parameters: Mapping[str, float] = MappingProxyType({}),
    forces: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Compare all curves of a page with what drive() gives: each variable, at each time."""
    creep = browser.execute_script("return Number(document.getElementById('creepStress')?.value)")
    for test in browser.execute_script("return Object.keys(neml2.results)"):
        rows = rows_of(browser, test)
        expected = driven(law, rows, test, parameters, creep, forces)
        factors = [1, 1, 1, *[np.sqrt(2)] * 3]
        for name, whole in expected.items():
            if whole.ndim == 1:
                same = [name, f"{name} (output)"]
                pairs = [(rows[next(n for n in reversed(same) if n in rows)], whole)]
            else:
                found = zip(("xx", "yy", "zz", "yz", "xz", "xy"), factors, whole.T, strict=True)
                pairs = [(rows[f"{name}.{c}"] * factor, wanted) for c, factor, wanted in found]
            for values, wanted in pairs:
                bound = 1e-12 * np.nanmax(np.abs(whole))
                assert np.allclose(values, wanted, 0, bound, equal_nan=True), (test, name)


@in_browser
@pytest.mark.parametrize("law", LAWS)
def test_a_slider_moves_the_curves_to_what_drive_gives(pages: Path, browser: Any, law: str) -> None:
    show(browser, pages / f"{law}.html")
    before = rows_of(browser, "tension")["stress.xx"]
    with Model(examples.path(law)) as model:
        values = {name: float(value) for name, value in model.named_parameters().items()}
    parameters = {
        name: move(browser, f"parameter-{name}-0", 0.75 * value) for name, value in values.items()
    }
    move(browser, "strain", 0.031)
    for name, value in parameters.items():
        assert value == pytest.approx(0.75 * values[name], rel=0.01)
    after = rows_of(browser, "tension")["stress.xx"]
    assert not np.allclose(after[1:], before[1:], rtol=1e-3)
    tests = browser.execute_script("return Object.keys(neml2.results)")
    assert tests == ["tension", "shear", "cycles", *(["creep"] if law != "elasticity" else [])]
    check(browser, examples.path(law), parameters)


@in_browser
@pytest.mark.filterwarnings("ignore:the output 'ratio' is not finite at rest")
@pytest.mark.parametrize("remembers", [True, False])
def test_the_first_row_and_all_others_are_what_drive_gives(
    browser: Any, tmp_path: Path, remembers: bool
) -> None:
    torch = pytest.importorskip("torch")
    from neml2_capi import export

    each = torch.tensor([1.0, 1, 1, 0, 0, 0], dtype=torch.float64)

    def remembering(d: dict[str, Any], _: object) -> dict[str, Any]:
        """A stress at rest, forces up to two steps back, and a rate, which rest does not have."""
        passed = d["t"] - d["t~1"]
        strain = d["strain"] - 1e-5 * (d["T"] - 20 + d["T"] - 2 * d["T~1"] + d["T~2"]) * each
        stress = 1.6e5 * (strain - 1e-4 * d["q~1"] * d["strain"]) + 1e5 * strain[:3].sum() * each
        return {
            "stress": stress,
            "q": d["q~1"] + 1e-3 * d["T"] * passed + 1e-4 * d["T~2"] + d["strain"][0],
            "toString": d["constructor"] + d["constructor~1"] + d["toString~1"],
            "energy": (strain * stress).sum() + 5,
            "rate": (d["strain"] - d["strain~1"])[0] / passed,
        }

    def static(d: dict[str, Any], _: object) -> dict[str, Any]:
        """A stress at rest, which whole Newton steps miss; names of columns; no ratio at first."""
        strain = 1e3 * d["strain"] - 8e-3 * d["T"] * each
        return {
            "stress": 500 * strain / torch.sqrt(1 + strain**2),
            "time": 7 + strain[0] + d["__proto__"],
            "strain.xx": 8 + strain[0],
            "ratio": d["strain"][0] / (d["strain"][0] + d["strain"][5]),
        }

    other = "constructor" if remembers else "__proto__"  # which objects of JavaScript have
    scalars = ["T", "T~1", "T~2", "q~1", "t", "t~1", "constructor~1", "toString~1"]
    scalars = [*(scalars if remembers else ["T"]), other]
    tensors = ["strain", "strain~1"] if remembers else ["strain"]
    others = ["q", "energy", "rate", "toString"] if remembers else ["time", "strain.xx", "ratio"]
    export.model(
        remembering if remembers else static,
        tmp_path / "law",
        inputs={**dict.fromkeys(tensors, "SR2"), **dict.fromkeys(scalars, "Scalar")},
        outputs={"stress": "SR2", **dict.fromkeys(others, "Scalar")},
        bounds={"T": (250, 600), other: (1, 2)},
        kernels="only",
    )
    make(tmp_path / "law", tmp_path / "page.html", cc=f"{zig(cross_environment())} c++")
    show(browser, tmp_path / "page.html")
    assert abs(rows_of(browser, "shear")["stress.xx"][0]) > 400
    controls = {name: browser.find_element("id", f"force-{name}") for name in ("T", other)}
    forces = {name: float(one.get_attribute("value")) for name, one in controls.items()}
    check(browser, tmp_path / "law", forces=forces)
    forces[other] = move(browser, f"force-{other}", 1.5)
    check(browser, tmp_path / "law", forces=forces)


@in_browser
def test_the_page_asks_nothing_of_a_network_and_is_small(pages: Path, browser: Any) -> None:
    browser.get_log("performance")
    browser.get_log("browser")
    show(browser, pages / "chaboche.html")
    assert (pages / "chaboche.html").stat().st_size < 1.5e6
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if "request" in m["params"]]
    assert all(url.startswith(("file:", "data:")) for url in asked)
    assert browser.get_log("browser") == []
    (mark,) = browser.execute_script("return performance.getEntriesByName('first plot')")
    print(f"first plot after {mark['startTime']:.0f} ms")  # told, not tested: the machine is shared


@in_browser
def test_what_is_downloaded_is_the_curve(pages: Path, browser: Any) -> None:
    show(browser, pages / "chaboche.html")
    browser.find_element("id", "cycles-csv").click()
    file = pages / "chaboche-cycles.csv"
    wait_until(browser, file.exists)
    saved, shown = columns(file.read_text().splitlines()), rows_of(browser, "cycles")
    assert saved.keys() == shown.keys()
    assert {"equivalent_plastic_strain", "X1.xx"} <= saved.keys()
    assert all(np.array_equal(saved[name], shown[name]) for name in saved)


@in_browser
def test_keys_move_a_slider_and_screen_readers_are_told(pages: Path, browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    show(browser, pages / "chaboche.html")
    slider = browser.find_element("id", "parameter-yield_stress-0-slider")
    told = browser.find_element("id", "tension-plot").get_attribute("aria-label")
    assert "stress xx 341.8" in told
    slider.send_keys(Keys.ARROW_RIGHT)
    wait_until(
        browser,
        lambda: told != browser.find_element("id", "tension-plot").get_attribute("aria-label"),
    )
    unnamed = """
        return [...document.querySelectorAll("input, button, [role=img], summary")].filter((one) =>
          !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim())).length
    """
    assert browser.execute_script(unnamed) == 0


CONTRASTS = """
    const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
    const light = (color) => {
      const linear = (c) => (c <= 10.31475 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
      const [r, g, b] = numbers(color).map(linear);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (one) => {
      for (; one; one = one.parentElement) {
        const color = getComputedStyle(one).backgroundColor;
        if (numbers(color)[3] !== 0) return color;
      }
    };
    const ratio = (...colors) => {
      const [dark, bright] = colors.map(light).sort((a, b) => a - b);
      return (bright + 0.05) / (dark + 0.05);
    };
    const has = (one) => [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const texts = [...document.querySelectorAll("body *:not(script)")].filter(has);
    const worst = Math.min(...texts.map((one) => {
      const style = getComputedStyle(one);
      return ratio(one.namespaceURI.endsWith("svg") ? style.fill : style.color, ground(one));
    }));
    const curve = document.querySelector(".curve");
    return [worst, ratio(getComputedStyle(curve).stroke, ground(curve))];
"""


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough(pages: Path, browser: Any, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    show(browser, pages / "chaboche.html")
    text, curve = browser.execute_script(CONTRASTS)
    # WCAG 2.2, AA: 1.4.3 of texts, 1.4.11 of what is drawn.
    assert text >= 4.5
    assert curve >= 3


@in_browser
def test_a_temperature_starts_within_its_bounds(browser: Any, tmp_path: Path) -> None:
    """A law without parameters, and without a time."""
    pytest.importorskip("torch")
    from neml2_capi import export

    export.model(
        lambda strain, temperature: {
            "stress": 2e5 * (1 - 1e-3 * temperature) * strain,
            WITH_COMMA: 3 * strain[0],
        },
        tmp_path / "warm",
        inputs={"strain": "SR2", "temperature": "Scalar"},
        outputs={"stress": "SR2", WITH_COMMA: "Scalar"},
        bounds={"temperature": (20, 600)},
        kernels="only",
    )
    make(tmp_path / "warm", tmp_path / "page.html", cc=f"{zig(cross_environment())} c++")
    show(browser, tmp_path / "page.html")
    assert (
        "No parameters to move, three tests" in browser.find_element("css selector", "header").text
    )
    assert not browser.find_element("id", "parameters").is_displayed()
    slider = browser.find_element("id", "force-temperature-slider")
    assert [slider.get_attribute(side) for side in ("min", "value", "max")] == ["20", "20", "600"]
    rows = rows_of(browser, "tension")
    assert rows["stress.xx"][-1] == pytest.approx(2e5 * 0.98 * 0.02)
    assert rows[WITH_COMMA][-1] == pytest.approx(3 * 0.02)
    move(browser, "force-temperature", 600)
    assert rows_of(browser, "tension")["stress.xx"][-1] == pytest.approx(2e5 * 0.4 * 0.02)


@in_browser
def test_a_law_without_numbers_at_zero_starts_elsewhere(browser: Any, tmp_path: Path) -> None:
    """As one of an absolute temperature; its name, and the title, are text and nothing else."""
    torch = pytest.importorskip("torch")
    from neml2_capi import export

    export.model(
        lambda strain, temperature: 1e5 * (1 + torch.log(temperature)) * strain,
        tmp_path / "warm",
        inputs={"strain": "SR2", "temperature": "Scalar"},
        outputs={"stress": "SR2"},
        kernels="only",
    )
    title = """a "law" of <b>'me'</b> & @code@</script><script>document.title = 1</script>"""
    page = tmp_path / "a page's law #1.html"
    make(tmp_path / "warm", page, title=title, cc=f"{zig(cross_environment())} c++")
    show(browser, page)
    assert browser.title == f"{title}: a material law"
    assert browser.find_element("css selector", "h1").text == title
    assert rows_of(browser, "tension")["stress.xx"][-1] == pytest.approx(1e5 * 0.02)
    move(browser, "force-temperature", -500)
    end = browser.find_element("id", "tension-end").text
    assert "A result is not a number at the time" in end


#: The name of a variable that a row of a table has to quote.
WITH_COMMA = 'thrice, "so to speak"'

#: A law in C++ of one number, for statements that make out[0] of in[0].
OF_ONE_NUMBER = """
namespace law {
struct inputs { double x; };
using outputs = inputs;
using tangent = inputs;
using parameters = inputs;
inline void update_point(int, int, const double* in, const double*, bool, double* out, double*,
                         int* told, double*) {
  STATEMENTS
  told[0] = 0;
}
}
"""

PRODUCTS = """
  using whole = unsigned __int128;
  const whole x = static_cast<unsigned long long>(in[0]);
  const whole product = (x << 61 | x) * (x << 33 | 12345);
  out[0] = static_cast<unsigned>(product >> 40) ^ static_cast<unsigned>(product >> 90);
"""


@in_browser
def test_large_integers_are_multiplied_without_a_library(browser: Any) -> None:
    """As the reduction of angles does, and so a crystal's law."""
    for x in (1, 4294967295, 2**52 + 12345):
        whole = ((x << 61 | x) % 2**128) * (x << 33 | 12345) % 2**128
        expected = (whole >> 40) % 2**32 ^ (whole >> 90) % 2**32
        assert evaluated(browser, OF_ONE_NUMBER.replace("STATEMENTS", PRODUCTS), x) == expected


LARGE = """
  volatile double matrix[100000], right[1];
  for (int i = 0; i < 100000; ++i) matrix[i] = in[0];
  right[0] = matrix[99999];
  out[0] = matrix[0] + right[0];
"""


@in_browser
def test_a_stack_has_room_for_the_arrays_of_a_large_law(browser: Any) -> None:
    """As the dense matrix of 206 unknowns, of 339 kB."""
    assert evaluated(browser, OF_ONE_NUMBER.replace("STATEMENTS", LARGE), 2.5) == 5


def evaluated(browser: Any, law: str, x: float) -> Any:
    """Compile a law of one number, and evaluate it; the message, if it does not run."""
    module = base64.b64encode(compiled(law, f"{zig(cross_environment())} c++")).decode()
    script = """
        const done = arguments[2];
        const bytes = Uint8Array.from(atob(arguments[0]), (letter) => letter.charCodeAt(0));
        WebAssembly.instantiate(bytes, {}).then(({ instance }) => {
          const { memory, place, update } = instance.exports;
          new Float64Array(memory.buffer, place(0), 1)[0] = arguments[1];
          update();
          done(new Float64Array(memory.buffer, place(2), 1)[0]);
        }).catch((error) => done(error.message));
    """
    return browser.execute_async_script(script, module, x)


@in_browser
def test_odd_numbers_are_told_and_do_not_last(pages: Path, browser: Any) -> None:
    show(browser, pages / "isotropic_hardening.html")
    ends = "return [...document.querySelectorAll('[id$=-end]')].map((one) => one.textContent)"
    before = browser.execute_script(ends)
    parameters = browser.execute_script("return Object.keys(neml2.law.parameter)")
    (elasticity,) = (one for one in parameters if one.endswith("E"))
    for number, told in (("1e308", "did not converge"), ("0", "stress was not found")):
        write(browser, f"parameter-{elasticity}-0", number)
        assert any(told in end for end in browser.execute_script(ends))
    assert write(browser, "cycles", "1e12") == "500"  # more would keep the browser for minutes
    assert write(browser, "cycles", "-1") == "500"
    assert write(browser, "cycles", "3") == "3"
    browser.find_element("id", "reset").click()
    wait_until(browser, lambda: browser.execute_script(ends) == before)


def write(browser: Any, control: str, number: str) -> str:
    """Write a number beside a slider, and return what it then is."""
    script = """
        const field = document.getElementById(arguments[0]);
        field.value = arguments[1];
        field.dispatchEvent(new Event("change"));
        requestAnimationFrame(() => requestAnimationFrame(() => arguments[2](field.value)));
    """
    return str(browser.execute_async_script(script, control, number))


def test_without_a_compiler_the_message_says_which(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"no-such-compiler.*pip install ziglang"):
        make(examples.path("elasticity"), tmp_path / "page.html", cc="no-such-compiler")
    assert not (tmp_path / "page.html").exists()


def test_a_law_in_single_precision_is_refused(
    artifacts: Mapping[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(PageError, match=r"computes in float32.*--dtype float64"):
        make(artifacts["elasticity_float32"], tmp_path / "page.html")


def test_a_law_without_a_stress_tensor_is_refused(surrogate: Path, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=r"the type SR2.*; stress is of the type Scalar"):
        make(surrogate, tmp_path / "page.html")
