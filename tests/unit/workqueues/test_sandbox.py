"""The archive of a user's sources: where it stands, what a new one replaces, and which submissions are the same without it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import reading
from workqueues.rules.jobs.sandbox import archive_of, merge_parameters, with_sandbox
from workqueues.rules.refine import planned_parameters, read_task, validate
from workqueues.rules.refine.changes import change, differing


def constant(value: str) -> dict[str, str]:
    return {"type": "constant", "value": value}


def analysis(archive: str, **more: Any) -> dict[str, Any]:
    params = reading("t", "in.data", **{"sourceURL": "https://cache.example.org:25443", "mergeOutput": True, **more})
    items = [constant("--sourceURL ${SURL} -r ."), constant(f"-a {archive}"), constant("-p ./run.sh -a 3")]
    params["jobParameters"] = [*items, *params["jobParameters"]]
    params["mergeSpec"] = {"jobParameters": f"-r . -a {archive} --sourceURL ${{SURL}} -o ${{TRN_OUTPUT:OUTPUT}}"}
    return params


def test_the_archive_and_its_place_stand_on_the_command_lines() -> None:
    params = analysis("one.tgz")
    assert validate(params) == []
    assert planned_parameters(read_task(params)).startswith(
        "--sourceURL https://cache.example.org:25443 -r . -a one.tgz -p ./run.sh -a 3 --in"
    )
    assert merge_parameters(params) == "-r . -a one.tgz --sourceURL https://cache.example.org:25443 -o ${TRN_OUTPUT:OUTPUT}"


def test_a_new_archive_replaces_the_old_one_and_nothing_else() -> None:
    params = analysis("one.tgz", fixedSandbox="two.tgz")
    assert validate(params) == []
    assert " -r . -a two.tgz -p ./run.sh -a 3 --in" in planned_parameters(read_task(params))
    assert merge_parameters(params).startswith("-r . -a two.tgz ")
    assert (archive_of(params), archive_of(analysis("one.tgz")), archive_of(reading("t", "x"))) == ("two.tgz", "one.tgz", "")
    built = with_sandbox({"fixedSandbox": "b", "buildSpec": {"archiveName": "a"}, "jobParameters": [3, constant("-a a")]})
    assert (built["buildSpec"], built["jobParameters"]) == ({"archiveName": "b"}, [3, constant("-a b")])


def test_a_placeholder_of_the_sources_needs_their_url_and_stands_alone() -> None:
    params = analysis("one.tgz", sourceURL=None)
    assert {(p.field, p.message) for p in validate(params)} >= {("jobParameters[0].value", "${SURL} needs sourceURL")}
    params = analysis("one.tgz")
    params["jobParameters"][0]["value"] = "--sourceURL ${SURL/L}"
    assert [(p.field, p.rule) for p in validate(params)] == [("jobParameters[0].value", "template")]


def test_a_task_that_is_submitted_again_keeps_its_sources_unless_new_ones_are_asked_for() -> None:
    first, again = analysis("one.tgz"), analysis("two.tgz")
    again["sourceURL"] = "https://other.example.org"
    assert differing(first, again) == {}
    new = {**again, "fixedSandbox": "two.tgz"}
    assert differing(first, new) == {"sourceURL": "https://other.example.org", "fixedSandbox": "two.tgz"}
    asked = change(first, differing(first, new), "")
    assert not asked.problems
    assert differing(dict(asked.params), analysis("three.tgz")) == {}, "the newest sources stay"
    other = analysis("two.tgz")
    other["jobParameters"][2]["value"] = "-p ./run.sh -a 4"
    assert set(differing(first, other)) == {"jobParameters"}


@pytest.mark.parametrize(("archive", "rule"), [("a\\1.tgz", "format"), ("\\g<x>", "format"), ("x" * 1_000_000, "length")])
def test_whatever_is_given_as_an_archive_is_a_fault_of_the_body_and_nothing_else(archive: str, rule: str) -> None:
    params = analysis("one.tgz", fixedSandbox=archive)
    params["jobParameters"] += [constant("-a one.tgz")] * 900
    assert ("fixedSandbox", rule) in {(p.field, p.rule) for p in validate(params)}
    assert sum(len(item.get("value", "")) for item in with_sandbox(params)["jobParameters"]) < 100_000
