"""Models at the exit of the interpreter, in forks, in workers and in other interpreters.

Each test is a process of its own, which must end well and say nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from conftest import Artifacts
from patience import PATIENCE
from slow import later

# Every script begins so. `parallel` is a batch that the workers of the library share.
BEGIN = """
import gc, os, sys, threading
import numpy as np
import neml2_capi
from neml2_capi import FatalError, Graph, Model, Tensor

ELASTICITY, VISCOPLASTIC = sys.argv[1:3]
STRAIN = np.linspace(-1e-3, 1e-3, 12).reshape(2, 6)

def inputs_of(model, points):
    rng = np.random.default_rng(1)
    given = {v.name: np.zeros((points, *v.base_shape)) for v in model.inputs}
    given["strain"] = rng.normal(0, 2e-3, given["strain"].shape)
    given["t"] = np.ones(points)
    return given

def parallel(model):
    model.options["threads"], model.options["chunk"] = 4, 8
    return model.forward(inputs_of(model, 64))["stress"]
"""


@pytest.fixture
def run(artifacts: Artifacts, tmp_path: Path) -> Callable[..., str]:
    """What runs a script: its output, once it has ended well and without a word on stderr."""

    def run(body: str) -> str:
        script = tmp_path / "script.py"
        script.write_text(BEGIN + dedent(body))
        # Python warns of every fork of a process with threads.
        command = [sys.executable, "-I", "-W", "ignore:This process:DeprecationWarning"]
        arguments = [str(artifacts[name]) for name in ("elasticity", "viscoplastic")]
        done = subprocess.run(
            [*command, str(script), *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=tmp_path,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


# ------------------------------------------------------------------------------------------------
# The exit of the interpreter
# ------------------------------------------------------------------------------------------------

LEFT = {
    "in globals": """
        model = Model(VISCOPLASTIC)
        call = model.bind(inputs_of(model, 3), report=True)
        call()
        graph = Graph(ELASTICITY + "/cpu/float64/elasticity.pt2")
        tensor, own = Tensor(STRAIN), Tensor.zeros((3,))
        stress = parallel(model)
        solve = model.solve(inputs_of(model, 2))
        system = solve.next()
        """,
    "in a cycle": """
        model = Model(ELASTICITY)
        call = model.bind({"strain": STRAIN})
        cycle = [model, call, call(), model.named_parameters(), model.options]
        cycle.append(cycle)
        model.cycle = cycle
        del model, call, cycle
        """,
    "in the module of the package": """
        model = Model(ELASTICITY)
        neml2_capi.kept = model, model.bind({"strain": STRAIN}), model.forward({"strain": STRAIN})
        sys.kept = neml2_capi.kept
        """,
    "in a thread that waits": """
        model = Model(ELASTICITY)
        kept, ready = threading.local(), threading.Event()
        def wait():
            kept.model = model, model.forward({"strain": STRAIN})
            ready.set()
            threading.Event().wait()
        threading.Thread(target=wait, daemon=True).start()
        ready.wait()
        """,
    "and used at the exit": """
        import atexit
        model = Model(VISCOPLASTIC)
        call = model.bind(inputs_of(model, 2))
        @atexit.register
        def use():
            call()
            parallel(model)
            model.close()
        """,
    "and used by what is freed last": """
        model = Model(ELASTICITY)
        class Late:
            def __init__(self, model):
                self.model, self.call = model, model.bind({"strain": STRAIN})
            def __del__(self, closed=FatalError):
                try:
                    self.call()
                    self.model.forward({"strain": self.call.inputs["strain"]})
                    self.model.close()
                except closed as error:  # the last collection may have freed it before
                    assert "is closed" in str(error)
        late = Late(model)
        """,
    "while a daemon thread evaluates": """
        model = Model(ELASTICITY)
        running = threading.Event()
        def evaluate():
            while True:
                model.forward({"strain": STRAIN})
                running.set()
        for _ in range(3):
            threading.Thread(target=evaluate, daemon=True).start()
        running.wait()
        """,
    "while a daemon thread solves in parallel": """
        model = Model(VISCOPLASTIC)
        running = threading.Event()
        def evaluate():
            while True:
                parallel(model)
                running.set()
        threading.Thread(target=evaluate, daemon=True).start()
        running.wait()
        """,
    "after an exception that nobody caught in a thread": """
        threading.excepthook = lambda details: None
        model = Model(ELASTICITY)
        thread = threading.Thread(target=model.forward, args=({},))
        thread.start()
        thread.join()
        """,
}


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_the_interpreter_exits_well_with_all_that_is_left(
    run: Callable[..., str], body: str
) -> None:
    assert run(body) == ""


def test_os_exit_and_a_signal_end_a_process_that_evaluates(run: Callable[..., str]) -> None:
    run(
        """
        model = Model(VISCOPLASTIC)
        def evaluate():
            while True:
                parallel(model)
        threading.Thread(target=evaluate, daemon=True).start()
        parallel(model)
        os._exit(0)
        """
    )


# ------------------------------------------------------------------------------------------------
# Other processes
# ------------------------------------------------------------------------------------------------


def test_parent_and_child_of_a_fork_go_on_with_the_same_objects(run: Callable[..., str]) -> None:
    printed = run(
        """
        model, graph = Model(VISCOPLASTIC), Graph(ELASTICITY + "/cpu/float64/elasticity.pt2")
        expected = parallel(model)
        call = model.bind(inputs_of(model, 2))
        before = {name: value.copy() for name, value in call().items()}
        children = []
        for number in range(3):
            child = os.fork()
            if child == 0:
                # The workers of the parent are not there: the child starts its own.
                same = all((call()[name] == before[name]).all() for name in before)
                same = same and (parallel(model) == expected).all()
                model.options["atol"] = 1e-3 * (number + 1)
                model.close()
                same = same and (parallel(Model(VISCOPLASTIC)) == expected).all()
                graph.close()
                os._exit(0 if same else 1)
            children.append(child)
            assert (parallel(model) == expected).all()
        for child in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (parallel(model) == expected).all()
        assert model.options["atol"] != 1e-3  # the child has its own memory
        print("well")
        """
    )
    assert printed == "well\n"


def test_a_fork_while_other_threads_evaluate_and_the_child_evaluates(
    run: Callable[..., str],
) -> None:
    printed = run(
        """
        import time
        model, other = Model(VISCOPLASTIC), Model(VISCOPLASTIC)
        expected = parallel(other)
        stop = threading.Event()
        def evaluate():
            while not stop.is_set():
                parallel(model)
        threads = [threading.Thread(target=evaluate) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if (parallel(other) == expected).all() else 1)
            end = time.monotonic() + 1800
            while (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > end:
                    os.kill(child, 9)
                time.sleep(1e-3)
            assert os.waitstatus_to_exitcode(found[1]) == 0
        stop.set()
        for thread in threads:
            thread.join()
        print("well")
        """
    )
    assert printed == "well\n"


def test_a_child_that_leaves_by_the_front_door_frees_what_it_has(run: Callable[..., str]) -> None:
    printed = run(
        """
        model = Model(VISCOPLASTIC)
        call = model.bind(inputs_of(model, 2))
        parallel(model)
        child = os.fork()
        parallel(model)
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            print("well")
        """
    )
    assert printed == "well\n"


@pytest.mark.parametrize("method", later(["fork", "forkserver", "spawn"], ["spawn"]))
def test_workers_take_models_as_arguments(run: Callable[..., str], method: str) -> None:
    printed = run(
        f"""
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        def evaluate(model, scale):
            inputs = inputs_of(model, 3)
            inputs["strain"] *= scale
            return os.getpid(), model.forward(inputs)["stress"]

        if __name__ == "__main__":
            model = Model(VISCOPLASTIC)
            model.options["atol"] = 1e-9
            scales = [0.5, 0.6, 0.7, 0.8]
            expected = [evaluate(model, scale)[1] for scale in scales]
            parallel(model)
            context = multiprocessing.get_context("{method}")
            with ProcessPoolExecutor(2, mp_context=context) as pool:
                found = list(pool.map(evaluate, [model] * len(scales), scales))
            assert all(pid != os.getpid() for pid, _ in found)
            assert all((a == b).all() for (_, a), b in zip(found, expected))
            with context.Pool(2) as pool:
                found = pool.starmap(evaluate, [(model, scale) for scale in scales])
            assert all((a == b).all() for (_, a), b in zip(found, expected))
            print("well")
        """
    )
    assert printed == "well\n"


def test_an_error_of_a_worker_arrives_whole(run: Callable[..., str]) -> None:
    printed = run(
        """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        def fail(model):
            inputs = inputs_of(model, 3)
            inputs["strain"][1] = 1e200
            model.forward(inputs)

        if __name__ == "__main__":
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                error = pool.submit(fail, Model(VISCOPLASTIC)).exception()
            print(type(error).__name__, error.converged_mask.tolist(), error.recoverable)
        """
    )
    assert printed == "ConvergenceError [True, False, True] True\n"


@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="concurrent.interpreters is what they are by now"
)
def test_a_sub_interpreter_works_or_says_why_not(run: Callable[..., str]) -> None:
    # numpy and cffi decide: both refuse more than one interpreter, or only warn.
    printed = run(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        model = Model(ELASTICITY)
        expected = model.forward({"strain": STRAIN})["stress"]
        inner = f'''if True:
            import sys, warnings
            warnings.simplefilter("ignore")
            try:
                import neml2_capi
                model = neml2_capi.Model({ELASTICITY!r})
                stress = model.forward({{"strain": {STRAIN.tolist()!r}}})["stress"]
                assert stress.tolist() == {expected.tolist()!r}
            except ImportError as error:
                assert "interpreter" in str(error) or "once per process" in str(error), error
        '''
        for _ in range(2):
            found = interpreters.create()
            assert interpreters.run_string(found, inner) is None
            interpreters.destroy(found)
        assert (model.forward({"strain": STRAIN})["stress"] == expected).all()
        print("well")
        """
    )
    assert printed == "well\n"
