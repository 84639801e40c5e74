"""The generated reference of configuration keys: every key of the running code is in it."""

from __future__ import annotations

from io import StringIO

from django.core.management import call_command

from broker_site.foundation.gdpconfig import KEYS


def test_the_reference_has_a_line_for_every_key_without_a_database() -> None:
    out = StringIO()
    call_command("config_reference", stdout=out)
    lines = out.getvalue().splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert len(rows) == len(list(KEYS))
    assert all(line.replace(r"\|", "").count("|") == 6 for line in rows)
    assert "| `CACHE_PERIOD` | duration | `1s` | from 0s to 2s |" in out.getvalue()
