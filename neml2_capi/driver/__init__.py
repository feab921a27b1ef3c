"""Drive a model through time.

A function, `drive`, takes a model and what is prescribed over time, and returns `Results`:

    times = np.linspace(0, 10, 101)
    results = neml2_capi.drive(model, times, {"strain": strain})
    plt.plot(results["t"], results["stress"][:, 0, 0])
"""

from neml2_capi.driver.results import Results
from neml2_capi.driver.stepping import StepError
from neml2_capi.driver.transient import drive

__all__ = ["Results", "StepError", "drive"]
