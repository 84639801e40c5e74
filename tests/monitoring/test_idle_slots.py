"""The pages of a queue and of the home say how many slots idle beside work, and why where it lasts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.test import TestCase

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.kernel import clock
from brokerage.models import ComputingQueue, IdleHour
from tests.builders import grid, parameters, submitted
from tests.monitoring.answers import text


class IdlePages(TestCase):
    alpha: ComputingQueue
    task_id: int

    @classmethod
    def setUpTestData(cls) -> None:
        cls.alpha, _ = grid("ALPHA", "BETA")
        cls.task_id = submitted(parameters()).id

    def note(self, hours_ago: int = 0, **columns: Any) -> None:
        now = clock.now()
        hour = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours_ago)
        looked_at = now - timedelta(hours=hours_ago)
        IdleHour.objects.create(queue=self.alpha, hour=hour, looked_at=looked_at, **columns)

    def pages(self, vo: str = "demo") -> tuple[str, str]:
        """Home and the page of the queue, as somebody of this VO sees them."""
        self.client.force_login(ensure_user("zoe", password="", roles=[(vo, "operator")]))
        return text(self.client.get("/")), text(self.client.get("/queues/ALPHA/"))

    def test_a_queue_without_idle_slots_says_so(self) -> None:
        home, queue = self.pages()
        self.assertNotIn("Idle slots", home)
        self.assertIn("No slot idled in the last day", queue)

    def test_a_slot_that_idles_for_long_beside_work_has_the_reason_and_the_task(self) -> None:
        why = "a task that passes here now waits until 12:00:00 UTC"
        columns: dict[str, Any] = {"idle_s": 1000, "beside_s": 250, "idle": 3, "beside": 2, "why": why, "task_id": self.task_id}
        self.note(longest_s=75, **columns)
        self.note(1, idle_s=3600)
        for page in self.pages():
            self.assertIn("2 of 3 idle slots", page)
            self.assertIn("stand beside work, for 75", page)
            self.assertIn(f"A{why[1:]}", page)
            self.assertIn(f"/tasks/{self.task_id}/brokerage/", page)
        self.assertIn("250 s", self.pages()[0])
        self.assertIn("3,600", self.pages()[1])

    def test_a_slot_that_has_just_begun_to_idle_needs_no_reason(self) -> None:
        self.note(longest_s=9, idle_s=9, beside_s=9, idle=1, beside=1, why="jobs that fit", task_id=self.task_id)
        for page in self.pages():
            self.assertNotIn("obs that fit", page)

    def test_held_work_is_told_apart(self) -> None:
        self.note(idle_s=9, held_s=9, idle=1, held=1, why_held="cap: -cap_running_jobs")
        self.assertIn("by cap: -cap_running_jobs", self.pages()[1])

    def test_a_task_of_another_vo_is_not_named(self) -> None:
        self.note(longest_s=75, idle_s=75, beside_s=75, idle=1, beside=1, why="jobs that fit", task_id=self.task_id)
        for page in self.pages("other"):
            self.assertIn("Jobs that fit", page)
            self.assertNotIn(f"/tasks/{self.task_id}/", page)
