"""What a pilot may send, and what it is told of a message that breaks rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest

from broker_site.foundation.outside_data import OutsideDataError
from brokerage.rules.dispatch.job_life import is_within, payload_times
from brokerage.rules.dispatch.pilot_messages import (
    NOT_DESCRIBED,
    Heartbeat,
    JobRequest,
    PastLeases,
    Registration,
    ResourceAttributes,
    read_ask,
    read_message,
    read_report,
)
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
        ({"metrics": {"a": [], "b": 1}}, "metrics.a", "type"),
        ({"metrics": {"a": "x" * 501, "b": 1}}, "metrics.a", "length"),
        ({"metrics": {str(n): "x" * 500 for n in range(40)}}, "metrics", "length"),
        ({"metrics": {str(n): n for n in range(101)}}, "metrics", "length"),
        ({"samples": {"step_s": 1, "memory_mb": [1, 2], "cpu_s": [0]}}, "samples", "length"),
        ({"samples": {"step_s": 0, "memory_mb": [], "cpu_s": []}}, "samples.step_s", "range"),
        ({"samples": {"step_s": 1, "memory_mb": [0] * 201, "cpu_s": []}}, "samples.memory_mb", "length"),
        ({"metadata": [1]}, "metadata", "type"),
        ({"metadata": {"a": "x" * 70_000}}, "metadata", "length"),
        ({"metadata": {str(n): n for n in range(1001)}}, "metadata", "length"),
        ({"metadata": {"a": float("inf")}}, "metadata", "range"),
        ({"end_time": 1767225600}, "end_time", "type"),
        ({"end_time": "2026-01-01T00:00:00"}, "end_time", "zone"),
        ({"outputs": [OUTPUT] * 1001}, "outputs", "length"),
        ({"outputs": [OUTPUT | {"size": 10**14 + 1}]}, "outputs[0].size", "range"),
        ({"outputs": [OUTPUT | {"n_events": 10**9 + 1}]}, "outputs[0].n_events", "range"),
        ({"corrupt_inputs": ["a", None]}, "corrupt_inputs[1]", "type"),
        ({"exit_code": True}, "exit_code", "type"),
    ],
)
def test_a_part_of_a_report_that_breaks_a_rule_is_left_out_and_told(part: dict[str, Any], place: str, rule: str) -> None:
    told = faults(Report, {"status": "failed"} | part)
    assert {field: told[field][0] for field in told} == {place: rule}
    report, notes = read_report({"status": "failed", "killed": True} | part)
    assert report.killed
    assert [note.split(": ")[0] for note in notes] == [place]


def test_metadata_are_measured_as_they_are_written_shortest() -> None:
    numbers = list(range(10)) * 3000
    assert read_message(Report, {"status": "finished", "metadata": {"a": numbers}}).metadata == {"a": numbers}


def test_what_would_steer_a_terminal_or_turn_a_line_around_is_a_blank_in_every_text() -> None:
    """Messages are printed by `explain`, in logs and in exports."""
    evil, plain = "a\x1b[31m\u202eb\r\n\tc", "a [31m b \n\tc"
    error = {"code": "E\x1b", "message": evil}
    report, _ = read_report(
        {"status": "failed", "error": error, "log_end": evil, "missing_inputs": [evil], "metrics": {evil: evil}}
    )
    assert (report.error_code, report.error_message, report.log_end) == ("E ", plain, plain)
    assert (report.missing_inputs, report.metrics) == ([plain], {plain: plain})
    body = {"queue": "ALPHA", "host": evil, "slot": "s\x9b1"}
    assert (read_message(Registration, body).host, read_message(Registration, body).slot) == ("a [31m b   c", "s 1")


def test_of_a_list_only_the_faulty_member_is_left_out_and_of_a_member_only_what_it_can_be_without() -> None:
    outputs = [OUTPUT | {"size": -1, "checksum": "x"}, OUTPUT | {"lfn": "b", "n_events": 2**31}, OUTPUT | {"lfn": "c"}, "d"]
    body: dict[str, Any] = {
        "status": "finished",
        "outputs": outputs,
        "metrics": {"cpu_s": 7, "text": "x" * 501},
        "missing_inputs": [1, "e"],
    }
    report, notes = read_report(body)
    assert [(o.lfn, o.n_events) for o in report.outputs] == [("b", None), ("c", None)]
    assert (report.metrics, report.missing_inputs) == ({"cpu_s": 7}, ["e"])
    assert {note.split(": ")[0] for note in notes} == {
        *("outputs[0].size", "outputs[0].checksum", "outputs[1].n_events", "outputs[3]"),
        *("metrics.text", "missing_inputs[0]"),
    }
    assert body["outputs"][0]["size"] == -1  # what was sent stays as it is


def test_a_thousand_faulty_members_are_left_out_and_the_first_are_told() -> None:
    report, notes = read_report({"status": "failed", "outputs": [OUTPUT | {"size": "x"}] * 1000})
    assert report.outputs == []
    assert len(notes) == 201
    assert notes[-1] == "at least 800 problems more"


def test_a_report_without_status_is_refused_with_all_that_is_wrong() -> None:
    with pytest.raises(OutsideDataError) as refused:
        read_report({"status": "perhaps", "exit_code": "1", "outputs": 7})
    assert {p.field for p in refused.value.problems} == {"status", "exit_code", "outputs"}


MADE = datetime(2026, 1, 1, 10, tzinfo=UTC)
BEGUN, NOW = MADE + timedelta(minutes=5), MADE + timedelta(hours=1)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-01-01T10:10:00Z", "2026-01-01T10:50:00Z", ("10:10", "10:50", 0)),
        ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", ("10:05", "11:00", 2)),
        ("2026-01-01T10:50:00Z", "2026-01-01T10:10:00Z", ("10:50", "11:00", 1)),
        ("2026-01-01T09:59:59Z", None, ("10:05", None, 1)),
        (None, "2026-01-01T11:00:01Z", (None, "11:00", 1)),
    ],
)
def test_times_outside_of_the_life_of_the_job_are_those_of_the_server(
    start: str | None, end: str | None, expected: tuple[str | None, str | None, int]
) -> None:
    told = [None if text is None else datetime.fromisoformat(text) for text in (start, end)]
    times = payload_times(told[0], told[1], MADE, BEGUN, NOW)
    shown = [None if time is None else time.strftime("%H:%M") for time in (times.start, times.end)]
    assert (*shown, len(times.notes)) == expected
    assert is_within(told[0], told[1], MADE, NOW) is (not times.notes)


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


ASK = {"request": "0d1c0c0e-6a44-4b1c-9c0e-2f5f3f0e1a11", "cores": 2, "memory_mb": 2000}


def ask_faults(**said: Any) -> dict[str, str]:
    with pytest.raises(OutsideDataError) as refused:
        read_ask(ASK | said)
    return {p.field: p.rule for p in refused.value.problems}


def test_an_ask_that_tells_sizes_only_says_nothing_else_of_its_resource() -> None:
    ask = read_ask(ASK | {"wait_s": 5, "last": True, "n": 3, "site": None})
    assert (ask.request.cores, ask.request.n, ask.request.last, ask.request.explain) == (2, 3, True, False)
    assert ask.resource is NOT_DESCRIBED
    assert ask.unknown == ()


def test_an_ask_describes_its_resource_and_a_single_text_reads_as_a_list_of_one() -> None:
    said = {
        "site": " ALPHA ",
        "cpu_time_s": 0,
        "grid_ce": "ce1",
        "platform": ["el9", "el8", "el9", " ", ""],
        "tags": ["GPU", "MP"],
    }
    more = {"required_tags": "GPU", "banned_sites": ["BETA"], "owner": "ada", "owner_group": ["up"], "whole_node": True}
    ask = read_ask(ASK | said | more | {"setup": "Production", "explain": True})
    found = ask.resource
    assert (found.site, ask.request.cpu_time_s, found.setup, found.whole_node) == ("ALPHA", 0, "Production", True)
    assert [*map(sorted, (found.grid_ce, found.platform, found.tags))] == [["ce1"], ["el8", "el9"], ["GPU", "MP"]]
    assert [*map(sorted, (found.required_tags, found.banned_sites))] == [["GPU"], ["BETA"]]
    assert [*map(sorted, (found.owner, found.owner_group))] == [["ada"], ["up"]]
    assert ask.request.explain
    assert read_ask(ASK | {"tags": []}).resource == ResourceAttributes()
    assert read_ask(ASK | {"tags": []}).request.cpu_time_s is None


def test_what_was_taken_once_does_not_make_another_kind_of_value_good() -> None:
    assert read_ask(ASK | {"whole_node": True}).resource.whole_node
    assert ask_faults(whole_node=1) == {"whole_node": "type"}
    assert read_ask(ASK | {"tags": ["GPU"]}).resource == read_ask(ASK | {"tags": ["GPU"]}).resource
    assert ask_faults(tags=["GPU", ["GPU"]]) == {"tags": "type"}


def test_what_is_kept_of_a_description_is_short_also_where_it_is_blank() -> None:
    short, long = (ASK | {"tags": ["GPU", " " * n]} for n in (1, 20_000))
    assert read_ask(short).resource is read_ask(short).resource
    assert read_ask(long).resource == read_ask(short).resource
    assert read_ask(long).resource is not read_ask(long).resource, "a thousand of them would fill the memory"


@pytest.mark.parametrize(
    ("said", "field", "rule"),
    [
        ({"tags": [f"T{n}" for n in range(10_000)]}, "tags", "length"),
        ({"tags": ["x" * 65]}, "tags", "length"),
        ({"platform": "x" * 65}, "platform", "length"),
        ({"banned_sites": {"A": 1}}, "banned_sites", "type"),
        ({"grid_ce": ["ce", 7]}, "grid_ce", "type"),
        ({"site": ["A", "B"]}, "site", "type"),
        ({"site": "x" * 65}, "site", "length"),
        ({"setup": 1}, "setup", "type"),
        ({"cpu_time_s": -1}, "cpu_time_s", "range"),
        ({"cpu_time_s": "a day"}, "cpu_time_s", "type"),
        ({"whole_node": 1}, "whole_node", "type"),
        ({"explain": "perhaps"}, "explain", "type"),
        ({"required_tags": ["GPU"]}, "required_tags", "subset"),
        ({"required_tags": ["GPU"], "tags": ["MP", "gpu"]}, "required_tags", "subset"),
    ],
)
def test_an_ask_that_breaks_a_rule_is_told_its_field(said: dict[str, Any], field: str, rule: str) -> None:
    assert ask_faults(**said) == {field: rule}


def test_all_faults_of_an_ask_are_told_at_once() -> None:
    told = ask_faults(cores=0, memory_mb=-5, cpu_time_s=-1, tags=[1], setup="x" * 65)
    assert set(told) == {"cores", "memory_mb", "cpu_time_s", "tags", "setup"}


def test_a_thousand_tags_are_taken() -> None:
    assert len(read_ask(ASK | {"tags": [f"{n:064d}" for n in range(1000)]}).resource.tags) == 1000


def test_the_lists_of_an_ask_have_a_bound_together_and_the_longest_is_named() -> None:
    many = [f"{n:064d}" for n in range(600)]
    with pytest.raises(OutsideDataError, match="tags") as refused:
        read_ask(ASK | {"tags": [*many, "one more"], "banned_sites": many})
    assert [(p.field, p.rule) for p in refused.value.problems] == [("tags", "length")]


def test_a_tag_that_follows_from_the_cores_may_be_required() -> None:
    assert read_ask(ASK | {"cores": 8, "required_tags": ["MultiProcessor"]}).resource.required_tags == {"MultiProcessor"}


def test_fields_that_nobody_knows_do_not_make_an_ask_fail_and_are_named_within_bounds() -> None:
    ask = read_ask(ASK | {"SubmitPool": "wms", "tags": ["GPU"], "y" * 100: [1]})
    assert ask.unknown == ("SubmitPool", "y" * 64)
    assert ask.resource.tags == {"GPU"}
    assert read_ask(ASK | {"SubmitPool": "wms"}).unknown == ("SubmitPool",)
    assert len(read_ask(ASK | {f"key{n}": n for n in range(500)}).unknown) == 20


def test_what_would_steer_a_terminal_is_a_blank_in_names_and_in_unknown_fields_too() -> None:
    ask = read_ask(ASK | {"tags": ["a\x1b[31m"], "b\u202ec": 1})
    assert ask.resource.tags == {"a [31m"}
    assert ask.unknown == ("b c",)


def test_no_name_in_an_ask_begins_a_line_of_its_own_where_asks_are_listed() -> None:
    """Who reads the list in a terminal would take the second line for another ask."""
    ask = read_ask(ASK | {"tags": ["GPU\n2026-01-01 pilot", "a\tb"], "setup": "x\ny", "more\nlines": 1})
    assert ask.resource.tags == {"GPU 2026-01-01 pilot", "a b"}
    assert ask.resource.setup == "x y"
    assert ask.unknown == ("more lines",)


@pytest.mark.parametrize("name", ["last", "explain", "whole_node"])
@pytest.mark.parametrize("value", ["yes", "false", 1, 0])
def test_true_or_false_is_neither_a_word_nor_a_number(name: str, value: object) -> None:
    with pytest.raises(OutsideDataError) as refused:
        read_ask(ASK | {name: value})
    assert [(p.field, p.rule) for p in refused.value.problems] == [(name, "type")]
