"""The package in `examples/plugins`, really installed into a folder, as tests of plugins want it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from broker_site.roof.embedded.instance import ROOT

SOURCE = Path(ROOT) / "examples" / "plugins"


def install(copy: Path, target: Path) -> Path:
    """Build the package from a copy of its source and install it into a folder; nothing is fetched."""
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    how = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    done = subprocess.run([sys.executable, "-m", "pip", "install", *how, str(copy)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target
