"""A process looks for no garbage while it loads, and never again through what it has loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LOADED = "import gc, django; django.setup(); print(gc.isenabled(), gc.get_freeze_count() > 100_000, *gc.get_stats()[2].values())"


def test_what_is_loaded_is_kept_out_of_garbage_collection_which_goes_on_afterwards() -> None:
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "broker_site.settings", "GRIDBROKER_PROFILE": "local"}
    ran = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, env=environ, capture_output=True, text=True)
    assert ran.stdout.split()[:2] == ["True", "True"], ran.stdout + ran.stderr
    assert int(ran.stdout.split()[2]) <= 1, "the whole is looked through once at most, by what comes before the apps"
