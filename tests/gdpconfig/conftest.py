"""Keys for the tests of gdpconfig, declared in place of those of the apps, and a process that has read nothing yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig import Key, keys


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[keys.Keys]:
    """A few keys of every kind that the tests set and read."""
    known = keys.Keys()
    known.declare(
        *(key for key in keys.KEYS if key.component == "gdpconfig"),
        Key(
            component="jobbroker",
            name="NQUEUED_SAT_CAP",
            type="int",
            unit="files",
            default=300,
            low=0,
            high=10**6,
            doc="Link cap.",
        ),
        Key(component="jobbroker", name="NW_ACTIVE", type="bool", default=True, doc="Whether the network weighs."),
        Key(component="jobbroker", name="NOTE", type="str", default="", high=40, doc="A text."),
        Key(component="jobbroker", name="GROUPS", type="json", default={}, doc="Processing groups."),
        Key(
            component="jobbroker",
            name="MODEL",
            type="enum",
            default="global",
            choices=("global", "work_queue"),
            doc="Share model.",
        ),
        Key(component="agents", name="PERIOD_<agent>", type="duration", default="10s", low="50ms", high="1d", doc="Period."),
        Key(component="prod_job_throttler", name="NQUEUELIMIT_<queue>", type="int", default=None, low=0, doc="Lower limit."),
    )
    monkeypatch.setattr(keys, "KEYS", known)
    gdpconfig.forget()
    yield known
    # What was read with these keys must not answer for the real ones.
    gdpconfig.forget()
