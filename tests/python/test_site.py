"""The documentation site is built by one command, and no link of it leads nowhere."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import ROOT
from patience import PATIENCE


@pytest.mark.full("an environment for the generator of pages")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="Sphinx 9 needs Python 3.11")
def test_the_site_is_built_with_its_pictures() -> None:
    command = [sys.executable, str(ROOT / "build.py"), "site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = ROOT / "build" / "site"
    index = (pages / "docs" / "index.html").read_text(encoding="utf-8")
    for page in ("calibration", "cluster", "from-neml2", "hosts/calculix"):
        assert f'href="{page}.html"' in index, page
        assert (pages / "docs" / f"{page}.html").is_file()
    pictures = re.findall(r'<img [^>]*src="([^"]+)"', index)
    assert any((pages / "docs" / picture).resolve().is_file() for picture in pictures)
