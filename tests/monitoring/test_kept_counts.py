"""Numbers from the counts of jobs are read anew when the counts move on, and not before; nobody sees those of another VO."""

from __future__ import annotations

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.permissions import VoScope
from brokerage.models import TallyGroup, TallyLevel, TallyMark
from brokerage.queries.kept_counts import MOST_ANSWERS
from monitoring.queries.facets import live_jobs
from monitoring.queries.users import user_rows

pytestmark = pytest.mark.django_db(databases=["default", "monitoring"])
ALL, NORTH = VoScope(everything=True), VoScope(everything=False, names=frozenset({"north"}))


def counted(vo: str, n: int) -> None:
    """So many jobs of a VO run, by the mark's next place."""
    for family, queue, user in (("vo", "", ""), ("queue", f"Q_{vo}", ""), ("user", "", f"u_{vo}")):
        group, _ = TallyGroup.objects.get_or_create(family=family, vo=vo, queue=queue, user_name=user)
        TallyLevel.objects.update_or_create(group=group, what="running", defaults={"n": n})
    TallyMark.objects.update_or_create(id=1, defaults={"seen": f"{n}:{n}:"})


def test_an_answer_is_kept_until_the_counts_move_on() -> None:
    counted("north", 3)
    first = live_jobs(ALL)
    assert first["queue"] == [("Q_north", 3)] and first["status"] == [("running", 3)]
    TallyLevel.objects.update(n=4)  # as nobody does without moving the mark
    assert live_jobs(ALL) is first
    counted("south", 5)
    assert dict(live_jobs(ALL)["queue"]) == {"Q_north": 4, "Q_south": 5}
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        counted("south", 7)
        assert dict(live_jobs(ALL)["queue"])["Q_south"] == 7
        _ = 1 / 0
    assert dict(live_jobs(ALL)["queue"])["Q_south"] == 5


def test_who_may_see_one_vo_gets_nothing_that_was_read_for_others() -> None:
    counted("north", 3)
    counted("south", 5)
    assert dict(live_jobs(ALL)["user_name"]) == {"u_north": 3, "u_south": 5}
    assert dict(live_jobs(NORTH)["user_name"]) == {"u_north": 3}
    assert [row.user_name for row in user_rows(ALL).rows] == ["u_south", "u_north"]
    assert [row.user_name for row in user_rows(NORTH).rows] == ["u_north"]
    assert [row.user_name for row in user_rows(ALL, part="sou").rows] == ["u_south"]


def test_users_stand_in_the_order_of_the_column_that_says_so() -> None:
    counted("north", 3)
    counted("south", 2)
    delivers = TallyGroup.objects.get(family="user", user_name="u_south")
    TallyLevel.objects.create(group=delivers, what="transferring", n=5)
    TallyMark.objects.update(seen="later")
    rows = user_rows(ALL).rows
    assert [(row.user_name, row.running, row.ending) for row in rows] == [("u_north", 3, 0), ("u_south", 2, 5)]


def test_nothing_is_kept_before_anything_is_counted() -> None:
    assert user_rows(ALL).rows == []
    TallyLevel.objects.create(group=TallyGroup.objects.create(family="user", vo="north", user_name="ann"), what="running", n=1)
    assert [row.user_name for row in user_rows(ALL).rows] == ["ann"]


def test_an_answer_costs_one_statement_and_those_asked_for_last_are_kept() -> None:
    counted("north", 3)
    first = user_rows(ALL)
    with CaptureQueriesContext(connections["default"]) as found:
        assert user_rows(ALL) is first
    assert len(found) == 1
    for i in range(MOST_ANSWERS):
        user_rows(ALL, part=f"{i}")
    assert user_rows(ALL) is not first
