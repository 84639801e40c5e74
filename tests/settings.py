"""Settings under which tests and type checks run: the local profile, and a password hash that costs nothing."""

import os

os.environ.setdefault("GRIDBROKER_PROFILE", "local")

import tempfile
from pathlib import Path

from broker_site.settings import *  # noqa: F403

# A second connection would not see what a test's open transaction wrote.
MONITORING_DATABASE = "default"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Every client of a test loads the middleware anew, and this one would read all static files each time.
WHITENOISE_AUTOREFRESH = True

INSTALLATION_FILE = str(Path(tempfile.mkdtemp(prefix="gridbroker-tests-")) / "installation.json")
"""Each process of the tests is an installation of its own."""
