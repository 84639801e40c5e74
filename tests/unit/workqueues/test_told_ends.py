"""Which ends of files are told together, and what an answer says of the parent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from workqueues.rules.elements.ends import EndedFile, Made, MadeFile, told_ends, unused
from workqueues.rules.elements.messages import OutputTold, Reply
from workqueues.rules.elements.parent_news import KnownParent, NotUsable, parent_news

NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)
OWN, ABOVE = uuid4(), uuid4()


def file(number: int, status: str = "finished", why: str = "") -> EndedFile:
    return EndedFile(number, f"f{number}", status, why)


def output(job: int, *, there: bool = True, log: bool = False) -> MadeFile:
    lfn = f"{'log' if log else 'out'}{job}"
    told = OutputTold(dataset="d", lfn=lfn, size=1, checksum="00000001", storage="S", path=lfn)
    return MadeFile(job, lfn, log, told if there else None)


def told(made: Made, *, task_ended: bool = False) -> list[tuple[str, str]]:
    return [
        (" ".join(f"{i.lfn}:{i.end}" for i in one.ends.inputs), " ".join(o.lfn for o in one.ends.outputs))
        for one in told_ends(made, task_ended=task_ended)
    ]


@pytest.mark.parametrize(
    ("made", "ended", "expected"),
    [
        (Made([]), False, []),
        (Made([file(1), file(2)], {1: [10], 2: [11]}, {}, [output(10), output(11)]), False,
            [("f1:finished", "out10"), ("f2:finished", "out11")]),
        (Made([file(1), file(2)], {1: [10], 2: [10]}, {}, [output(10)]), False, [("f1:finished f2:finished", "out10")]),
        (Made([file(1), file(2, "running")], {1: [10], 2: [10, 11]}, {}, [output(10), output(11)]), False, []),
        (Made([file(1), file(2, "ready")], {1: [10], 2: [10]}, {}, [output(10)]), True, [("f1:finished f2:unused", "out10")]),
        (Made([file(1), file(2), file(3)], {1: [10], 2: [10, 11], 3: [11]}), False,
            [("f1:finished f2:finished f3:finished", "")]),
        (Made([file(1), file(2), file(3)], {1: [10], 2: [11], 3: [12]}, {10: [20], 11: [20]}, [output(20), output(12)]), False,
            [("f1:finished f2:finished", "out20"), ("f3:finished", "out12")]),
        (Made([file(1), file(2, "running")], {1: [10], 2: [11]}, {10: [20], 11: [20]}, [output(20)]), False, []),
        (Made([file(1, "failed", "exit 1"), file(2, "lost"), file(3, "broken")]), False,
            [("f1:failed", ""), ("f2:unused", ""), ("f3:unused", "")]),
        (Made([file(1), file(2)], {1: [10], 2: [10]}, {}, [output(10, there=False)]), False, [("f1:unused f2:unused", "")]),
        (Made([file(1)], {1: [10]}, {}, [output(10), output(10, log=True, there=False)]), False, [("f1:finished", "out10")]),
    ],
    ids=["none", "apart", "one job", "waits for the rest", "the task ended", "chain of events", "merged", "waits to be merged",
        "failed and lost", "output is lost", "a log is lost"],
)  # fmt: skip
def test_what_hangs_together_is_told_together_once_all_of_it_ended(
    made: Made, ended: bool, expected: list[tuple[str, str]]
) -> None:
    assert told(made, task_ended=ended) == expected


def test_the_states_that_were_told_come_with_the_ends_and_why() -> None:
    (one,) = told_ends(Made([file(1, "failed", "x" * 600)]), task_ended=False)
    assert (one.states, len(one.ends.inputs[0].why)) == ({1: "failed"}, 510)
    assert [len(ends.inputs) for ends in unused([str(n) for n in range(2500)], "why")] == [1000, 1000, 500]
    assert unused([], "why") == []


def reply(**said: Any) -> Reply:
    base = {"protocol": 1, "version": "1", "instance": str(ABOVE), "incarnation": str(uuid4()), "now": NOW.isoformat()}
    return Reply(**{**base, "lineage": [str(ABOVE)], **said})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, ""),
        ({"now": (NOW + timedelta(hours=23)).isoformat()}, ""),
        ({"now": (NOW - timedelta(days=2)).isoformat()}, "its clock is 2 days, 0:00:00 behind ours"),
        ({"lineage": [str(ABOVE), str(uuid4()), str(OWN)]}, "a circle"),
        ({"instance": str(OWN), "lineage": [str(OWN)]}, "the address of this broker itself"),
    ],
)
def test_what_is_odd_about_a_parent_is_told(said: dict[str, Any], words: str) -> None:
    news = parent_news(KnownParent(), reply(**said), OWN, NOW, 86_400)
    assert news.oddity.startswith(words) or words in news.oddity
    assert bool(news.oddity) is bool(words)
    assert news.circle is (words in ("a circle", "the address of this broker itself"))


def test_a_parent_is_restored_when_its_incarnation_is_another_and_unknown_at_first() -> None:
    first, other = uuid4(), uuid4()
    same = reply(incarnation=str(first))
    assert not parent_news(KnownParent(), same, OWN, NOW, 1).restored
    assert not parent_news(KnownParent(ABOVE, first), same, OWN, NOW, 1).restored
    assert parent_news(KnownParent(ABOVE, other), same, OWN, NOW, 1).restored
    assert parent_news(KnownParent(other, first), same, OWN, NOW, 1).restored


@pytest.mark.parametrize(
    "said", [{"instance": "me"}, {"incarnation": ""}, {"now": "today"}, {"now": "2026-11-27T09:00:00"}, {"lineage": ["x"]}]
)
def test_an_answer_that_does_not_say_whose_it_is_cannot_be_used(said: dict[str, Any]) -> None:
    with pytest.raises(NotUsable):
        parent_news(KnownParent(), reply(**said), UUID(int=1), NOW, 1)
