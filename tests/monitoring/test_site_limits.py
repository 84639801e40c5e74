"""The page of a queue, and the admin, say what limits the jobs that its site gets, and why it gets none."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.test import TestCase

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel import clock
from brokerage.ledger.match_limits import Limits
from brokerage.ledger.site_limits import SiteCount, advertise, take_room
from brokerage.rules.dispatch.site_limits import Advertisement
from tests.builders import grid
from tests.flow.steps import noted
from tests.monitoring.answers import text


def words(answer: Any) -> str:
    """What a page says, without its marks."""
    assert answer.status_code == 200
    return " ".join(re.sub(r"<[^>]*>", " ", text(answer)).split())


class LimitPages(TestCase):
    @classmethod
    def setUpTestData(cls) -> None:
        grid("ALPHA")

    def ad(self, ago_s: float = 1, **numbers: Any) -> None:
        said = {"max_jobs": 100, "max_submitting_jobs": 10, "current_jobs": 95, "current_submitting_jobs": 3, **numbers}
        counted_at = clock.now() - timedelta(seconds=ago_s)
        advertise("SITE_ALPHA", SiteCount(Advertisement(**said), counted_at, ("st1", "st2"), "forwarding"), "enrolment")

    def page(self) -> str:
        self.client.force_login(ensure_user("zoe", password="", roles=[("demo", "auditor")]))
        return words(self.client.get("/queues/ALPHA/"))

    def admin(self, table: str) -> str:
        self.client.force_login(ensure_user("root", password="", superuser=True))
        return words(self.client.get(f"/admin/brokerage/{table}/"))

    def test_a_site_without_limits_has_no_such_part(self) -> None:
        self.assertNotIn("Limits of SITE_ALPHA", self.page())

    def test_the_last_advertisement_its_age_and_the_room_are_shown(self) -> None:
        self.ad(ago_s=120)
        assert take_room("SITE_ALPHA", 2, 900.0)
        page = self.page()
        for told in ("Limits of SITE_ALPHA", "by a forwarding node", "95 + 2 of 100", "3 + 2 of 10", "st1, st2", "Room 3"):
            self.assertIn(told, page)
        self.assertNotIn("gets no job now", page)

    def test_why_nothing_is_given_is_told_with_the_numbers(self) -> None:
        self.ad(current_jobs=103)
        self.assertIn("SITE_ALPHA gets no job now: 103 jobs there and 0 matched since, of at most 100 (MaxJobs).", self.page())
        self.assertIn("103 jobs there and 0 matched since", self.admin("siteadvertisement"))

    def test_an_old_advertisement_is_the_reason(self) -> None:
        self.ad(ago_s=3600)
        self.assertIn("gets no job now: its last advertisement is 60 min old", self.page())
        self.assertIn("60 min old", self.admin("siteadvertisement"))

    def test_limits_on_kinds_of_jobs_are_shown_as_they_stand(self) -> None:
        set_override("dispatch", "RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1, "cms": 7}}}', who="ada", why="test")
        set_override("dispatch", "MATCHING_DELAYS", '{"SITE_ALPHA": {"vo": {"cms": 600}}}', who="ada", why="test")
        limits = Limits()
        limits.at("SITE_ALPHA")
        for vo in ("demo", "cms"):
            assert not noted(limits, "SITE_ALPHA", {"vo": frozenset({vo})})
        page = self.page()
        self.assertRegex(page, r"vo demo the site 1 1 ◷ held")
        self.assertRegex(page, r"vo cms the site 1 7 600 s ◷ held for (600|599)")
        self.assertIn("cms", self.admin("matchgauge"))

    def test_every_table_of_limits_can_be_looked_at(self) -> None:
        self.ad()
        assert take_room("SITE_ALPHA", 2, 900.0)
        for table in ("siteadvertisement", "roomblock", "matchgauge", "pilotce"):
            self.assertIn("Select", self.admin(table))
