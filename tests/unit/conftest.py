"""Unit tests use no database, mail, URLs or templates; what pytest-django sets up for each test takes longer than most tests."""

from __future__ import annotations

import pytest

PER_TEST = (
    "_dj_autoclear_mailbox",
    "_django_clear_site_cache",
    "_django_db_marker",
    "_django_isolate_apps",
    "_django_set_urlconf",
    "_django_setup_unittest",
    "_live_server_helper",
    "_template_string_if_invalid_marker",
)
"""Its fixtures for every test; the database stays blocked without them."""

for name in PER_TEST:
    globals()[name] = pytest.fixture(scope="session", name=name)(lambda: None)
