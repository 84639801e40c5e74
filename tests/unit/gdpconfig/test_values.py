"""Which value holds: exactly that VO, then all VOs, then the default; and what pure rules get. Pure."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from broker_site.foundation.gdpconfig.keys import BadConfig, Key, Keys
from broker_site.foundation.gdpconfig.values import Config, Row, from_document, pick

KEYS = Keys()
KEYS.declare(
    Key(component="jobbroker", name="NQUEUED_SAT_CAP", type="int", default=300, low=0, doc="Files queued on a link."),
    Key(component="jobbroker", name="NW_ACTIVE", type="bool", default=True, doc="Whether the network weighs."),
    Key(component="jobbroker", name="STORAGE_MIN_FREE_SIZE", type="float", default=200.0, zero_is_unset=True, doc="Free space."),
    Key(component="jobbroker", name="MIN_WEIGHT_<label>_<gshare>", type="float", default=None, doc="Least weight."),
    Key(component="jobbroker", name="MIN_WEIGHT_<label>", type="float", default=0.0, doc="Least weight."),
    Key(
        component="watcher", name="HEARTBEAT_TIMEOUT_<workflow>", type="duration", default="2h", app="pandaserver", doc="Silence."
    ),
)


def override(name: str, value: str, vo: str = "", component: str = "jobbroker", app: str = "jedi") -> Row:
    return Row(app, component, name, vo, value)


def config(*rows: Row) -> Config:
    return Config(7, rows, KEYS)


def test_without_overrides_the_defaults_hold() -> None:
    assert config().value("jobbroker", "NQUEUED_SAT_CAP") == 300
    assert config().value("watcher", "HEARTBEAT_TIMEOUT_<workflow>", app="pandaserver", workflow="production") == 7200.0


def test_the_override_of_the_vo_wins_over_the_one_for_all() -> None:
    both = config(override("NQUEUED_SAT_CAP", "150"), override("NQUEUED_SAT_CAP", "10", vo="atlas"))
    assert both.value("jobbroker", "NQUEUED_SAT_CAP", vo="atlas") == 10
    assert both.value("jobbroker", "NQUEUED_SAT_CAP", vo="wlcg") == 150
    assert both.value("jobbroker", "NQUEUED_SAT_CAP") == 150


def test_an_override_of_one_vo_does_not_hold_for_others() -> None:
    one = config(override("NQUEUED_SAT_CAP", "10", vo="atlas"))
    assert one.value("jobbroker", "NQUEUED_SAT_CAP", vo="wlcg") == 300
    assert one.value("jobbroker", "NQUEUED_SAT_CAP") == 300


def test_false_and_zero_are_values_unless_the_key_says_they_mean_unset() -> None:
    zeros = config(override("NW_ACTIVE", "false"), override("NQUEUED_SAT_CAP", "0"), override("STORAGE_MIN_FREE_SIZE", "0"))
    assert zeros.value("jobbroker", "NW_ACTIVE") is False
    assert zeros.value("jobbroker", "NQUEUED_SAT_CAP") == 0
    assert zeros.value("jobbroker", "STORAGE_MIN_FREE_SIZE") == 200.0


def test_a_rule_gets_a_component_as_a_mapping_and_picks_the_most_special_name() -> None:
    mapping = config(override("MIN_WEIGHT_managed_MC 16", "0.5"), override("MIN_WEIGHT_user", "0.1", vo="atlas")).component(
        "jobbroker", vo="atlas"
    )
    assert mapping["NQUEUED_SAT_CAP"] == 300
    assert pick(mapping, "MIN_WEIGHT_<label>_<gshare>", label="managed", gshare="MC 16") == 0.5
    assert pick(mapping, "MIN_WEIGHT_<label>_<gshare>", label="managed", gshare="other") is None
    assert pick(mapping, "MIN_WEIGHT_<label>", label="user") == 0.1
    assert pick(mapping, "MIN_WEIGHT_<label>", label="managed") == 0.0


def test_the_mapping_of_another_vo_has_nothing_of_this_one() -> None:
    mapping = config(override("MIN_WEIGHT_user", "0.1", vo="atlas")).component("jobbroker", vo="wlcg")
    assert "MIN_WEIGHT_user" not in mapping


def test_a_mapping_cannot_be_changed() -> None:
    mapping: Any = config().component("jobbroker")
    with pytest.raises(TypeError):
        mapping["NQUEUED_SAT_CAP"] = 1


def test_an_override_that_no_longer_fits_is_left_out_and_named() -> None:
    broken = config(override("NQUEUED_SAT_CAP", "-1"), override("GONE", "1"), override("NW_ACTIVE", "false"))
    assert broken.value("jobbroker", "NQUEUED_SAT_CAP") == 300
    assert broken.value("jobbroker", "NW_ACTIVE") is False
    assert [(row.name, problem.rule) for row, problem in broken.faults] == [("NQUEUED_SAT_CAP", "range"), ("GONE", "unknown_key")]


def test_reading_a_key_that_nobody_declared_is_an_error_not_a_silent_none() -> None:
    with pytest.raises(BadConfig, match="did you mean NW_ACTIVE"):
        config().value("jobbroker", "NW_ACTIV")


def test_a_document_gives_a_configuration_without_a_database() -> None:
    given = {
        "jobbroker": {"NQUEUED_SAT_CAP": 150, "MIN_WEIGHT_user": 0.2},
        "pandaserver:watcher": {"HEARTBEAT_TIMEOUT_production": "30min"},
    }
    read = from_document(given, KEYS)
    assert read.value("jobbroker", "NQUEUED_SAT_CAP", vo="atlas") == 150
    assert read.value("watcher", "HEARTBEAT_TIMEOUT_<workflow>", app="pandaserver", workflow="production") == 1800.0


def test_a_document_is_refused_with_all_its_problems() -> None:
    with pytest.raises(BadConfig) as caught:
        from_document({"jobbroker": {"NQUEUED_SAT_CAP": "many", "NW_ACTIV": True, "NW_ACTIVE": 1}, "agents": 5}, KEYS)
    assert [problem.field for problem in caught.value.problems] == [
        "jobbroker.NQUEUED_SAT_CAP",
        "jobbroker.NW_ACTIV",
        "jobbroker.NW_ACTIVE",
        "agents",
    ]


def test_declaring_and_reading_documents_needs_no_django() -> None:
    program = "import sys; import broker_site.foundation.gdpconfig as g; g.from_document({}); sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
