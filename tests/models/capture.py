"""Write the scalar operations of the graphs of a model to a folder; no package is compiled.

python tests/models/capture.py INPUT.i --model NAME ... DIR
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "neml2_capi" / "kernels" / "capture.py"


def main() -> None:
    *arguments, into = sys.argv[1:]
    Path(into).mkdir(parents=True)
    environment = {
        **os.environ,
        "NEML2_CAPI_KERNELS_INTO": into,
        "NEML2_CAPI_KERNELS_ONLY": "1",
    }
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, str(SCRIPT), *arguments, "--output-dir", scratch]
        sys.exit(subprocess.run(command, env=environment).returncode)


if __name__ == "__main__":
    main()
