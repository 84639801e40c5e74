"""What a pilot may send, and what it is told of a message that breaks rules."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest

from broker_site.foundation.outside_data import OutsideDataError
from brokerage.rules.dispatch.pilot_messages import Heartbeat, JobRequest, PastLeases, Registration, read_message
from brokerage.rules.dispatch.settlement import Report
from brokerage.states import JOB

OUTPUT = {"lfn": "a", "size": 1.0, "checksum": "ad:0000000A", "storage": "ALPHA_DISK", "n_events": None}


def faults(kind: Any, body: dict[str, Any]) -> dict[str, tuple[str, str]]:
    with pytest.raises(OutsideDataError) as refused:
        read_message(kind, body)
    return {p.field: (p.rule, p.message) for p in refused.value.problems}


def test_the_states_of_messages_are_those_of_the_machine() -> None:
    assert get_args(get_type_hints(Heartbeat)["status"]) == JOB.heartbeat
    assert get_args(get_type_hints(Report)["status"]) == JOB.reported


def test_a_report_is_read_with_checksums_alike_texts_cut_and_null_as_nothing() -> None:
    error = {"code": "E" * 50, "message": 7}
    body = {"status": "finished", "outputs": [OUTPUT], "error": error, "exit_code": None, "missing_inputs": None, "later": 1}
    report = read_message(Report, body | {"metrics": {"cpu_s": 1, "cvmfs": True}, "start_time": "2026-01-01T00:00:00Z"})
    assert [(o.size, o.checksum, o.n_events) for o in report.outputs] == [(1, "0000000a", None)]
    assert (report.error_code, report.error_message, report.exit_code, report.missing_inputs) == ("E" * 40, "", None, [])
    assert report.metrics == {"cpu_s": 1, "cvmfs": True}
    assert report.start_time is not None


@pytest.mark.parametrize(
    ("part", "place", "rule"),
    [
        ({"error": "crash"}, "error", "type"),
        ({"metrics": {"a": []}}, "metrics", "type"),
        ({"metrics": {str(n): n for n in range(101)}}, "metrics", "type"),
        ({"end_time": 1767225600}, "end_time", "type"),
        ({"end_time": "2026-01-01T00:00:00"}, "end_time", "zone"),
        ({"outputs": [OUTPUT] * 1001}, "outputs", "length"),
        ({"outputs": [OUTPUT | {"size": 2**53 + 1}]}, "outputs[0].size", "range"),
        ({"corrupt_inputs": ["a", None]}, "corrupt_inputs[1]", "type"),
        ({"exit_code": True}, "exit_code", "type"),
    ],
)
def test_a_report_that_breaks_a_rule_is_refused_at_the_place(part: dict[str, Any], place: str, rule: str) -> None:
    told = faults(Report, {"status": "failed"} | part)
    assert {field: told[field][0] for field in told} == {place: rule}


def test_a_registration_and_an_ask_say_what_the_pilot_offers_within_limits() -> None:
    told = faults(Registration, {"queue": "A" * 61, "host": "", "cores": 0, "memory_mb": 1.5, "disk_mb": -1})
    assert told["cores"] == ("range", "expected 1 to 10000, found the number 0")
    assert {field: rule for field, (rule, _) in told.items()} == {
        "queue": "length",
        "host": "required",
        "slot": "required",
        "cores": "range",
        "memory_mb": "type",
        "disk_mb": "range",
    }
    assert faults(JobRequest, {"request": "7"}) == {"request": ("type", "must be a UUID")}
    assert read_message(JobRequest, {"request": str(UUID(int=7))}) == JobRequest(request=UUID(int=7))


def test_past_leases_are_pairs_of_numbers() -> None:
    assert read_message(PastLeases, {"jobs": [[7, 1]]}).jobs == [(7, 1)]
    assert read_message(PastLeases, {}).jobs == []
    assert set(faults(PastLeases, {"jobs": [[7, 1], [7], ["7", 1], [True, 1]]})) == {"jobs[1]", "jobs[2]", "jobs[3]"}
