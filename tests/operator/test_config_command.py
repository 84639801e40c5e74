"""`config export` and `config import`: what was written is read back, whatever was set, and bad files change nothing."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_site.foundation.gdpconfig import BadConfig, remove_override, set_override
from broker_site.foundation.gdpconfig.changesets import Draft, Step
from broker_site.foundation.gdpconfig.exchange import exported, imported
from broker_site.foundation.gdpconfig.models import ChangeSet, Override
from broker_site.foundation.gdpconfig.store import preview
from broker_site.foundation.kernel import clock
from workqueues.models import GlobalShare, WorkQueue

pytestmark = pytest.mark.django_db


def config(*arguments: str, **more: Any) -> str:
    out = io.StringIO()
    call_command("config", *arguments, stdout=out, **more)
    return out.getvalue()


def some() -> None:
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="slow links")
    set_override("jobbroker", "NQUEUED_SAT_CAP", 15, vo="atlas", who="bob", why="slow links")
    set_override("agents", "PERIOD_reap", "20s", who="bob", why="x", until=clock.now().replace(microsecond=0) + timedelta(days=1))


def stored() -> list[tuple[Any, ...]]:
    return list(Override.objects.order_by("name", "vo").values_list("app", "component", "name", "vo", "value", "until"))


def file(folder: Path, text: str) -> str:
    (folder / "config.json").write_text(text)
    return str(folder / "config.json")


def entries(*each: str) -> str:
    return '{"overrides": [' + ",\n".join(each) + "]}"


def cap(value: object, **more: object) -> str:
    return json.dumps({"key": "jobbroker.NQUEUED_SAT_CAP", "value": value, **more})


def test_what_was_exported_is_imported_again_in_one_set(tmp_path: Path) -> None:
    some()
    text, before = config("export"), stored()
    assert text == config("export")
    assert text.startswith('{"overrides": [\n{"key": "agents.PERIOD_reap", "value": "20s", "until": "')
    assert len(text.splitlines()) == 9
    assert '"work_queues": [\n{"name": "default", "vo": "*", "queue_order": 1000,' in text
    for component, name, vo in (("jobbroker", "NQUEUED_SAT_CAP", ""), ("agents", "PERIOD_reap", "")):
        remove_override(component, name, vo=vo, who="bob", why="x")
    told = config("import", file(tmp_path, text), "--reason", "back", "--who", "ann")
    assert "jobbroker.NQUEUED_SAT_CAP: none -> '150'" in told
    assert "for atlas" not in told
    assert stored() == before
    last = ChangeSet.objects.first()
    assert last is not None
    assert (last.who, last.source, last.lines.count()) == ("ann", "import", 2)
    assert "all of it holds already" in config("import", file(tmp_path, text), "--reason", "again")


def test_only_removes_what_the_file_does_not_name(tmp_path: Path) -> None:
    some()
    text = entries(cap(7))
    config("import", file(tmp_path, text), "--reason", "x")
    assert Override.objects.count() == 3
    config("import", file(tmp_path, text), "--reason", "x", "--only")
    assert [row[2:5] for row in stored()] == [("NQUEUED_SAT_CAP", "", "7")]


def test_a_dry_run_tells_and_writes_nothing(tmp_path: Path) -> None:
    some()
    before = stored()
    told = config("import", file(tmp_path, entries(cap(7))), "--dry-run")
    assert "jobbroker.NQUEUED_SAT_CAP: '150' -> '7'" in told
    assert "kept decision" in told
    assert (stored(), ChangeSet.objects.count()) == (before, 3)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no JSON that can be read"),
        ("[]", "the members overrides, shares, work_queues"),
        ('{"overrides": 7}', "overrides is to be a list"),
        ('{"overrides": [], "more": 7}', "the members overrides, shares, work_queues"),
        ('{"overrides": [', "no JSON that can be read"),
        ("[" * 100_000, "no JSON that can be read"),
        (entries("7"), "key and value are expected"),
        (entries('{"key": "jobbroker.NQUEUED_SAT_CPA", "value": 7}'), "did you mean NQUEUED_SAT_CAP"),
        (entries(cap("many")), "'many' is not a whole number"),
        (entries('{"key": "jobbroker.NQUEUED_SAT_CAP"}'), "a value is needed"),
        (entries('{"key": 7, "value": 7}'), "key is to be a text"),
        (entries(cap(7, vo=7)), "vo is to be a text"),
        (entries(cap(7, until="soon")), "until is to be a time"),
        (entries(cap(7, valeu=7)), "'valeu' is not known"),
        (entries(*[cap(7)] * 10_000), "10000 lines are more than the 1000"),
        ("x" * 2_000_001, "more than the 2000000"),
    ],
)
def test_a_bad_file_is_told_and_changes_nothing(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CommandError, match="Nothing was changed") as refused:
        config("import", file(tmp_path, text), "--reason", "x")
    assert told in str(refused.value)
    assert not ChangeSet.objects.exists()


def test_a_reason_is_needed_and_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="needs its reason"):
        config("import", file(tmp_path, entries(cap(7))))
    with pytest.raises(CommandError, match="cannot be read"):
        config("import", str(tmp_path / "nothing.json"), "--reason", "x")


def test_a_file_made_on_an_older_revision_is_refused_where_that_changed(tmp_path: Path) -> None:
    some()
    name = file(tmp_path, entries(cap(7)))
    with pytest.raises(CommandError, match="bob has set it to '150'"):
        config("import", name, "--reason", "x", "--base", "0")
    assert "Applied as revision 4" in config("import", name, "--reason", "x", "--base", "3")


def test_shares_and_work_queues_go_with_the_overrides_and_a_list_that_is_not_named_is_left_alone(tmp_path: Path) -> None:
    shares = """{"shares": [{"name": "Top", "vo": "demo", "value": 60},
        {"name": "MC", "vo": "demo", "parent": "Top", "value": 1.5}],
        "work_queues": [{"name": "default", "vo": "*", "queue_order": 9},
        {"name": "evgen/managed", "vo": "demo", "queue_order": 1, "criteria": "processingType = :p",
        "variables": "p:evgen", "queue_share": 40}]}"""
    told = config("import", file(tmp_path, shares), "--reason", "from the repository")
    assert "share MC for demo: new: parent Top, value 1.5, throttled true" in told
    assert "work queue default for *: queue_order 1000 \N{RIGHTWARDS ARROW} 9" in told
    assert (WorkQueue.objects.get(queue_name="evgen").queue_type, GlobalShare.objects.get(name="MC").value) == ("managed", 1.5)
    text = config("export")
    assert "all of it holds already" in config("import", file(tmp_path, text), "--reason", "again", "--only")
    config("import", file(tmp_path, '{"shares": [{"name": "Top", "vo": "demo", "value": 60}]}'), "--reason", "x", "--only")
    assert list(GlobalShare.objects.values_list("name", flat=True)) == ["Top"]
    assert WorkQueue.objects.count() == 2
    with pytest.raises(CommandError, match=r"work_queues\[0\].queue_order: evgen \(demo, managed\) has the order 1 already"):
        config("import", file(tmp_path, '{"work_queues": [{"name": "q", "vo": "*", "queue_order": 1}]}'), "--reason", "x")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=3))
def test_any_text_that_can_be_set_survives_the_file(values: list[str]) -> None:
    with transaction.atomic():
        for number, value in enumerate(values):
            with contextlib.suppress(BadConfig):
                set_override("task_watcher", "EXPRESS_SHARE", value, vo=f"vo{number}", who="bob", why="x")
            with contextlib.suppress(BadConfig):
                set_override("prod_job_throttler", f"NQUEUELIMIT_{value}", 7, who="bob", why="x")
        steps = preview(Draft(imported(exported()), "", "", "import"))
        assert [step for step in steps if step.place.kind == "config"] == _steps()
        assert not [step for step in steps if step.differs]
        transaction.set_rollback(True)


def _steps() -> list[Step]:
    rows = sorted(Override.objects.all(), key=lambda override: override.place)
    return [Step(n, row.place, row.value, row.until, row.value, row.until) for n, row in enumerate(rows)]


def test_what_was_exported_as_yaml_is_read_by_people_and_imported_again(tmp_path: Path) -> None:
    some()
    text, before = config("export", "--format", "yaml"), stored()
    assert text.startswith("overrides:\n- key: agents.PERIOD_reap\n  value: 20s\n  until: ")
    assert "- key: jobbroker.NQUEUED_SAT_CAP\n  vo: atlas\n  value: 15\n" in text
    assert '\nwork_queues:\n- name: default\n  vo: "*"\n  queue_order: 1000\n' in text
    for component, name, vo in (("jobbroker", "NQUEUED_SAT_CAP", ""), ("agents", "PERIOD_reap", "")):
        remove_override(component, name, vo=vo, who="bob", why="x")
    assert "jobbroker.NQUEUED_SAT_CAP: none -> '150'" in config("import", file(tmp_path, text), "--reason", "back")
    assert stored() == before
    assert "all of it holds already" in config("import", file(tmp_path, text), "--reason", "again", "--only")


YAML_SHARES = """\
# what the meeting agreed on
shares:
- name: Top
  vo: demo
  value: 60        # percent
- name: MC
  vo: demo
  parent: Top
  value: 40
  throttled: {throttled}
"""


def test_a_file_that_a_person_wrote_is_imported_and_its_faults_have_line_field_and_rule(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        config("import", file(tmp_path, YAML_SHARES.format(throttled="yes")), "--reason", "x")
    assert "shares[1].throttled: line 10: throttled: true or false is expected (type)" in str(refused.value)
    assert not GlobalShare.objects.exists()
    assert "Applied" in config("import", file(tmp_path, YAML_SHARES.format(throttled="false")), "--reason", "x")
    assert list(GlobalShare.objects.order_by("name").values_list("name", "value", "throttled")) == [
        ("MC", 40, False),
        ("Top", 60, True),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("overrides:\n- key: jobbroker.NQUEUED_SAT_CAP\n", "overrides[0].value: line 2: overrides[0]: a value is needed"),
        (
            "overrides:\n- key: jobbroker.NQUEUED_SAT_CAP\n  value: on\n",
            "overrides[0].value: line 3: NQUEUED_SAT_CAP: 'on' is not a whole number",
        ),
        ("overrides:\n- key: a.B\n  valeu: 7\n  value: 7\n", "overrides[0].valeu: line 3: overrides[0]: 'valeu' is not known"),
        (
            "overrides:\n- key: a.B\n  value: 7\n  until: soon\n",
            "overrides[0].until: line 4: overrides[0]: until is to be a time",
        ),
        ("overrides: 7\n", "overrides: line 1: overrides is to be a list (type)"),
        ("overrides:\n- key: *all\n", "document: it is no YAML that can be read: line 2: aliases"),
        ("just words", "the members overrides, shares, work_queues"),
    ],
)
def test_a_bad_yaml_file_is_told_by_line_and_changes_nothing(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CommandError, match="Nothing was changed") as refused:
        config("import", file(tmp_path, text), "--reason", "x")
    assert told in str(refused.value)
    assert not ChangeSet.objects.exists()
