"""Shares, configuration, tokens and acts on many by the command: read, drafted, tried, applied, taken back, refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from broker_site.client import Client, Refused
from broker_site.foundation.access.models import Credential
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig.exchange import exported
from broker_site.foundation.gdpconfig.models import ChangeSet, Override
from brokerage.models import BulkAction, ComputingQueue
from tests.builders import grid, parameters, submitted
from tests.client.broker import Broker, Said, ended
from tests.client.conftest import BrokerOf
from tests.flow.steps import run_agents
from workqueues.models import GlobalShare, Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]

TREE = """{"shares": [
{"name": "Top", "vo": "demo", "value": 80},
{"name": "MC", "vo": "demo", "parent": "Top", "value": 60, "campaign": "mc.*"},
{"name": "Data", "vo": "demo", "parent": "Top", "value": 40}
]}"""


def values() -> dict[str, float]:
    return dict(GlobalShare.objects.values_list("name", "value"))


def changed(said: Said) -> list[str]:
    return [line for line in said.out.splitlines() if " -> " in line or line.endswith("removed")]


def test_a_share_tree_is_drafted_tried_applied_edited_and_taken_back(broker_of: BrokerOf, tmp_path: Path) -> None:
    eve = broker_of("eve", ("demo", "share-editor"))
    file = tmp_path / "tree.json"
    file.write_text(TREE)
    tried = eve("share", "diff", str(file))
    assert tried.code == 0, tried.err
    assert "share MC for demo: parent Top (new), value 60 (new), throttled true (new), campaign mc.* (new)" in tried.out
    assert not values()
    assert eve("share", "apply", str(file), "--yes").code == 2  # nobody says why
    unasked = eve("share", "apply", str(file), "-m", "first")
    assert (unasked.code, "--yes does it" in unasked.err, values()) == (2, True, {})
    made = eve("share", "apply", str(file), "-m", "first", "--yes", "--json")
    assert made.code == 0, made.err
    assert made.documents[-1]["revision"] == 1
    assert values() == {"Top": 80, "MC": 60, "Data": 40}
    assert "nothing to change" in eve("share", "apply", str(file), "-m", "again", "--yes").err
    # An editor that gives MC more and takes Data out; then one that leaves what cannot stand.
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i -e '/Data/d' -e 's/60/75/' $1\n")
    editor.chmod(0o755)
    edited = eve("share", "edit", "demo", "-m", "more for MC", "--yes", EDITOR=str(editor))
    assert edited.code == 0, edited.err
    assert changed(edited)[:2] == ["share MC for demo: value 60 -> 75", "share Data for demo: removed"]
    assert values() == {"Top": 80, "MC": 75}
    editor.write_text("#!/bin/sh\nsed -i 's/75/-1/' $1\n")
    bad = eve("share", "edit", "-m", "x", "--yes", EDITOR=str(editor), TMPDIR=str(tmp_path))
    assert bad.code == 5
    assert "share MC for demo.value (" in bad.err
    assert "hint: the draft is in /" in bad.err
    # What was written is never lost: only what holds takes the draft away.
    editor.write_text("#!/bin/sh\nsed -i 's/75/90/' $1\n")
    for words, said in ((("-m", "x"), "nobody can answer"), (("--dry-run",), "value 75 -> 90")):
        kept = eve("share", "edit", *words, EDITOR=str(editor), TMPDIR=str(tmp_path))
        assert said in kept.out + kept.err
        assert "90" in Path(kept.err.split("the draft is in ")[1].split(":")[0]).read_text(encoding="utf-8")
    editor.write_text("#!/bin/sh\ntouch $1.seen\n")
    early = eve("share", "edit", EDITOR=str(editor), TMPDIR=str(tmp_path))
    assert (early.code, "No reason" in early.err, list(tmp_path.glob("*.seen"))) == (2, True, [])
    for no_editor in ("vi 'x", str(tmp_path / "none")):
        unstarted = eve("share", "edit", "-m", "x", EDITOR=no_editor, TMPDIR=str(tmp_path))
        assert (unstarted.code, "cannot be started" in unstarted.err) == (2, True), unstarted
    late = eve("share", "apply", str(file), "-m", "late", "--yes", "--base", "1")
    assert (late.code, "Changed meanwhile" in late.err) == (5, True)
    assert eve("share", "tree").rows[0][:2] == ["Top", "demo"]
    back = eve("cfg", "revert", "2", "-m", "no", "--yes")
    assert back.code == 0, back.err
    assert values() == {"Top": 80, "MC": 60, "Data": 40}
    # With --only and a VO nothing of another VO is removed.
    GlobalShare.objects.create(name="Other", vo="atlas", value=1)
    root = broker_of("root", ("demo", "share-editor"), superuser=True)
    assert "share Other for atlas: removed" in root("share", "diff", str(file), "--only").out
    only = root("share", "diff", "-", "--only", "--vo", "demo", stdin=json.dumps({"shares": json.loads(TREE)["shares"][:1]}))
    assert changed(only)[:2] == ["share Data for demo: removed", "share MC for demo: removed"]
    assert "atlas" not in only.out
    ada = broker_of("ada", ("demo", "submitter"))
    assert ada("share", "diff", "-", stdin='{"shares": [{"name": "A", "vo": "demo", "value": 1}]}').code == 4


def test_keys_are_read_with_where_they_come_from_set_for_a_time_and_brought_back(broker_of: BrokerOf, url: str) -> None:
    root = broker_of("root", ("demo", "operator"), superuser=True)
    key = "jobbroker.NQUEUELIMITSITE"
    assert root("cfg", "get", key, "-q").out == "20\n"
    assert "  default; default 20" in root("cfg", "get", "NQUEUELIMITSITE").out
    for mistyped in ("NQUEUELIMITSIT", "jobroker.NQUEUELIMITSITE"):
        assert f"there is no such key; the nearest one is {key}" in root("cfg", "get", mistyped).err
    tried = root("cfg", "set", f"{key}=30", "--dry-run")
    assert (tried.code, "none -> 30" in tried.out, "holds: 20 -> 30" in tried.out) == (0, True, True), tried
    assert root("cfg", "set", f"{key}=many", "-m", "x", "--yes").code == 5
    assert root("cfg", "set", f"{key}=30", "-m", "room", "--yes").code == 0
    assert root("cfg", "set", f"{key}=40", "--vo", "demo", "--for", "2h", "-m", "rush", "--yes").code == 0
    assert root("cfg", "get", key, "--json=value,source").documents == [{"value": "30", "source": "override for all VOs"}]
    told = root("cfg", "get", key, "--vo", "demo").out
    assert f"{key} = 40\n  override for demo; default 20" in told
    assert "revision 1 of 20" in told
    assert "by root: room" in told
    assert [row[0] for row in root("cfg", "ls", "overridden=true").rows] == [key]
    assert root("cfg", "get", "NQUEUELIMITSIET").code == 3
    assert root("cfg", "ls", "overriden=true").code == 5
    # What is exported is what the administration writes, and it comes back.
    kept = root("cfg", "export")
    assert kept.out == exported()
    as_yaml = root("cfg", "export", "--yaml")
    assert as_yaml.out == exported("yaml")
    pattern = "watcher.HEARTBEAT_TIMEOUT_analysis"
    assert root("cfg", "set", f"pandaserver:{pattern}=3h", "-m", "x", "--yes").code == 0
    assert root("cfg", "get", f"pandaserver:{pattern}", "-q").out == "3h\n"
    assert root("cfg", "unset", key, "-m", "calm", "--yes").code == 0
    again = root("cfg", "apply", "-", "--only", "-m", "as it was", "--yes", stdin=kept.out)
    assert again.code == 0, again.err
    assert sorted(Override.objects.values_list("name", "value")) == [("NQUEUELIMITSITE", "30"), ("NQUEUELIMITSITE", "40")]
    unlike = root("cfg", "diff", "-", "--only", stdin=as_yaml.out)
    assert (unlike.code, "nothing to change" in unlike.err) == (0, True), unlike.err
    assert root("cfg", "history", "-q", "name=NQUEUE*").out.split() == ["5", "4", "2", "1"]
    assert f"  pandaserver:{pattern}: 3h -> none" in root("cfg", "show", "5").out
    assert root("cfg", "show", "999").code == 3
    client = Client(url, root.environ["GRIDBROKER_TOKEN"])
    made = client.config.apply([{"kind": "config", "key": key, "vo": "", "value": None}], "from Python")
    assert (client.config.get(key).value, client.config.change(made["revision"])["why"]) == ("20", "from Python")
    assert client.config.revert(made["revision"], "no")["revision"] == ChangeSet.objects.count() == 7
    with pytest.raises(Refused) as refused:
        client.config.apply([{"kind": "config", "key": key, "vo": "", "value": "31"}], "late", base=1)
    assert (refused.value.status, client.config.get(key).value) == (409, "30")


def test_attributes_of_a_queue_are_set_by_hand_for_a_time_and_taken_away(broker_of: BrokerOf) -> None:
    root = broker_of("root", superuser=True)
    grid("ALPHA")

    def alpha() -> str:
        return ComputingQueue.objects.get(name="ALPHA").status

    assert root("queue", "set", "ALPHA", "status=offline").code == 2  # nobody says why
    said = root("queue", "set", "ALPHA", "status=offline", "maxrss=9000", "--for", "2d", "--reason", "water leak")
    assert (said.code, alpha()) == (0, "offline"), said.err
    assert re.match(r"ALPHA.status = offline until .* UTC; its document says online\nALPHA.maxrss = 9000 until", said.out)
    bad = root("queue", "set", "ALPHA", "maxrss=much", "--reason", "x")
    assert (bad.code, "attributes.maxrss" in bad.err) == (5, True)
    assert root("queue", "set", "ALPHA", "status=test", "--until", "yesterday", "--reason", "x").code == 5
    assert root("queue", "set", "ALPHA", "status=test", "--until", "2099-01-01", "--for", "2d", "--reason", "x").code == 2
    assert root("queue", "set", "NONE", "status=test", "--reason", "x").code == 3
    told = root("queue", "unset", "ALPHA", "status", "--reason", "dry again")
    assert (told.out, alpha()) == ("ALPHA.status is as its document says\n", "online")
    python = Client(root.environ["GRIDBROKER_URL"], root.environ["GRIDBROKER_TOKEN"])
    assert [row["attribute"] for row in python.queues.overrides("ALPHA")] == ["maxrss"]
    assert broker_of("olga", ("demo", "operator"))("queue", "unset", "ALPHA", "maxrss", "--reason", "x").code == 4


def test_one_proposes_another_approves_or_declines(broker_of: BrokerOf) -> None:
    ann, bob = (broker_of(name, ("demo", "operator"), superuser=True) for name in ("ann", "bob"))
    key = "jobbroker.NQUEUELIMITSITE"
    for value in (30, 40, 50):
        proposed = ann("cfg", "set", f"{key}={value}", "-m", f"room for {value}", "--propose", "--yes")
        assert (proposed.code, "before somebody else approves it" in proposed.out) == (0, True), proposed
    waiting = bob("cfg", "proposals")
    third, second, first = (row[0] for row in waiting.rows)
    assert waiting.rows[0][2:] == ["ann", "waits", key, "room for 50"]
    unasked = bob("cfg", "approve", first)
    assert f"Proposal {first} of 20" in unasked.out
    assert f"UTC by ann: room for 30\n  {key}: none -> 30" in unasked.out
    assert (unasked.code, "--yes does it" in unasked.err, Override.objects.count()) == (2, True, 0)
    own = ann("cfg", "approve", first, "--yes")
    assert (own.code, "somebody else has to" in own.err) == (5, True)
    made = bob("cfg", "approve", first, "--yes", "--json")
    assert (made.code, [each["revision"] for each in made.documents]) == (0, [None, 1]), made
    assert list(Override.objects.values_list("name", "value")) == [("NQUEUELIMITSITE", "30")]
    assert bob("cfg", "approve", second, "--yes").code == 5  # it rests on what the first one changed
    assert bob("cfg", "decline", second).code == 2  # nobody says why
    assert "is refused; nothing was changed" in bob("cfg", "decline", second, "-m", "that is too many").out
    assert "is withdrawn" in ann("cfg", "decline", third, "-m", "no more").out
    assert bob("cfg", "proposals").rows == []
    assert [(row[0], row[3]) for row in bob("cfg", "proposals", "--all").rows] == [
        (third, "withdrawn"), (second, "refused"), (first, "approved"),
    ]  # fmt: skip
    assert bob("cfg", "approve", "999", "--yes").code == 3
    assert broker_of("eve", ("demo", "submitter"))("cfg", "decline", first, "-m", "x").code == 4


def test_priority_share_needs_and_split_rule_of_a_task_are_set(broker_of: BrokerOf) -> None:
    grid("ALPHA")
    for name, label in (("Work", ".*"), ("Express", "none")):
        GlobalShare.objects.create(name=name, vo="demo", value=50, prod_source_label=label)
    first, other = (submitted(parameters(f"t{n}")).id for n in range(2))
    run_agents(1, ("refine", "feed", "assign", "generate"))
    olga = broker_of("olga", ("demo", "operator"))
    said = olga("task", "set", str(first), "priority=900", "share=Express", "-m", "they wait for it", "ramCount=3000")
    assert (said.code, said.err, len(said.out.splitlines())) == (0, "", 3), said
    task = Task.objects.get(id=first)
    assert (task.current_priority, task.gshare, task.ram_count) == (900, "Express", 3000)
    both = ("task", "set", str(first), str(other), "nMaxFilesPerJob=3")
    unasked = olga(*both)
    assert (unasked.code, "change 2 tasks" in unasked.err) == (2, True)
    changed = olga(*both, "--yes", "--json=before,after")
    assert (changed.code, len(changed.documents)) == (0, 2), changed
    assert olga("task", "set", str(first), "nMaxFilesPerJob=", "--json").documents[0]["after"] != changed.documents[0]["after"]
    misspelt = olga("task", "set", str(first), "prioirty=1")
    assert (misspelt.code, "hint: perhaps priority; there are: priority, share, ramCount" in misspelt.err) == (5, True), misspelt
    assert olga("task", "set", str(first), "priority=high").code == 5
    nearest = olga("task", "set", str(first), "share=Expres")
    assert (nearest.code, "Express" in nearest.err) == (5, True)
    for words in ((str(first),), ("priority=1",), (str(first), "priority=1", "priority=2")):
        assert olga("task", "set", *words, "--yes").code == 2
    assert olga("task", "set", "999999", "priority=1").code == 3
    where = ("--where", "status=running,ready,scouting", "--where", "vo=demo")
    asked = olga("task", "set", "priority=700", *where)
    assert (asked.code, "priority 2 tasks that match status=running,ready,scouting vo=demo" in asked.err) == (2, True), asked
    begun = olga("task", "set", "priority=700", *where, "--yes", "-m", "all of them")
    assert (begun.code, begun.out.startswith("act ")) == (0, True), begun
    run_agent("command", looked=True)
    assert set(Task.objects.values_list("current_priority", flat=True)) == {700}
    for changes in ("share=Express", "priority=high", f"{first} priority=1", "priority=1 ramCount=1"):
        assert olga("task", "set", *changes.split(), *where, "--yes").code == 2
    assert broker_of("ada", ("demo", "submitter"))("task", "set", str(first), "priority=1").code == 4


def test_tokens_are_made_with_limits_listed_and_revoked(ada: Broker) -> None:
    made = ada("token", "new", "--vo", "demo", "--role", "submitter", "--days", "7", "--note", "laptop")
    text = made.out.strip()
    assert (made.code, text.startswith("gbu_"), "is not shown again" in made.err) == (0, True, True)
    limited = {"GRIDBROKER_TOKEN": text}
    assert ada("ls", **limited).code == 0
    newest = ada("token", "ls").rows[0]
    assert (newest[2:4], newest[-1], text in str(newest)) == (["demo", "submitter"], "laptop", False)
    assert ada("token", "new", "--vo", "atlas").code == 5
    number = Credential.objects.get(note="laptop").id
    assert ada("token", "revoke", str(number)).out == f"token {number} is revoked\n"
    assert ada("token", "revoke", "999999").code == 3
    assert json.loads(ada("token", "ls", "--json=id,revoked_at", "-n", "1").out)["revoked_at"] is not None


def test_all_that_match_are_asked_of_begun_followed_and_stopped(ada: Broker, url: str) -> None:
    tasks = [submitted(parameters(f"many.{n}")).id for n in range(3)]
    other = submitted(parameters("other")).id
    matching = ("kill", "task_name=many.*")
    assert ada(*matching, str(other)).code == 2
    unasked = ada(*matching)
    assert (unasked.code, "kill 3 tasks that match task_name=many.*?" in unasked.err) == (2, True)
    assert ada("kill", "task_name=none.*", "--yes").code == 5
    assert ada("kill", "task=many.*", "--yes").code == 5
    assert not BulkAction.objects.exists()
    held = ada("kill", "task_name=many.2", "--json=id,n").documents[0]  # one alone is not asked about
    shown = ada("bulk", "show", str(held["id"])).out
    assert (held["n"], shown) == (1, f"act {held['id']}, kill 1 task: 0 done, 0 skipped, 1 to do\n")
    stopped = ada("bulk", "stop", str(held["id"]), "-m", "no")
    assert "1 not done: stopped by ada" in stopped.out
    assert ada("bulk", "stop", str(held["id"])).code == 5
    following = ada.begin(*matching, "--wait", "--yes", "-m", "over", "--timeout", "60")
    done = ended(following, lambda: run_agent("command", looked=True))
    assert (done.code, "3 done, 0 skipped" in done.out) == (0, True), done
    again = ada.begin(*matching, "--wait", "--yes")
    left = ended(again, lambda: run_agent("command", looked=True))
    assert (left.code, f"  {tasks[0]} skipped: Task {tasks[0]} is" in left.out) == (5, True), left
    assert [row[3:6] for row in ada("bulk", "ls").rows] == [["3", "0", "3"], ["3", "3", "0"], ["1", "0", "0"]]
    assert Task.objects.get(id=other).command == ""
    client = Client(url, ada.environ["GRIDBROKER_TOKEN"])
    assert client.bulk.count("tasks", "kill", task_name="other")["ids"] == [other]
    with pytest.raises(Refused):
        client.bulk.count("jobs", "retry", task_name="other")
    assert ada("job", "kill", "task=999", "--yes").code == 5


def test_a_draft_that_a_person_wrote_as_yaml_is_tried_and_applied_and_a_fault_has_its_line(
    broker_of: BrokerOf, tmp_path: Path
) -> None:
    eve = broker_of("eve", ("demo", "share-editor"))
    file = tmp_path / "tree.yaml"
    file.write_text("# as agreed\nshares:\n- name: Top\n  vo: demo\n  value: 80\n  throttled: false\n")
    tried = eve("share", "diff", str(file))
    assert (tried.code, values()) == (0, {}), tried.err
    assert "share Top for demo: value 80 (new)" in tried.out
    assert eve("share", "apply", str(file), "-m", "first", "--yes").code == 0
    assert values() == {"Top": 80}
    file.write_text("shares:\n- name: Top\n  vo: demo\n  value: *half\n")
    refused = eve("share", "apply", str(file), "-m", "x", "--yes")
    assert refused.code != 0
    assert "line 4: aliases" in refused.err
    file.write_text("overrides: []\n")
    assert "expected is an object with lists shares, work_queues" in eve("share", "diff", str(file)).err
