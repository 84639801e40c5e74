"""The page of one's own tasks: what needs attention first, with the reason."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, ClassVar

from django.db.models import F
from django.test import TestCase

from broker_site.foundation.access.credentials import ensure_user
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from tests.flow.steps import BAD, end, run_agents, try_take
from tests.monitoring.answers import text
from tests.pages.scene import PASSWORD, Scene, make_scene
from workqueues.models import Task


class MyWork(TestCase):
    scene: ClassVar[Scene]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.scene = make_scene()

    def me(self, name: str, vo: str = "demo") -> dict[str, Any]:
        self.client.force_login(ensure_user(name, password=PASSWORD, roles=[(vo, "submitter")]))
        answer = self.client.get("/me.json")
        self.assertEqual(answer.status_code, 200, text(answer))
        told: dict[str, Any] = json.loads(answer.content)
        return told

    def test_everyone_sees_their_own_tasks(self) -> None:
        grace, ada = self.me("grace"), self.me("ada")
        self.assertEqual(
            {row["id"] for row in grace["live"]}, {self.scene.pending.id, self.scene.running.id, self.scene.fresh.id}
        )
        self.assertEqual({row["id"] for row in ada["live"]}, {self.scene.retrying.id})
        ended = {self.scene.done.id, self.scene.failed.id, self.scene.aborted.id}
        self.assertEqual({row["id"] for row in ada["ended"]}, ended)

    def test_what_needs_attention_comes_first_with_what_is_wrong_and_why(self) -> None:
        told = {task["id"]: task["attention"] for task in self.me("ada")["needs_attention"]}
        jobs = Job.objects.filter(task_id=self.scene.retrying.id)
        failed, ended = jobs.filter(status="failed").count(), jobs.filter(status__in=("failed", "finished")).count()
        said = f"{failed} of {ended} ended jobs failed"
        self.assertEqual(told, {self.scene.retrying.id: said, self.scene.failed.id: "ended badly"})
        self.assertEqual(self.me("grace")["needs_attention"], [])
        Task.objects.filter(id=self.scene.pending.id).update(status_since=F("status_since") - timedelta(hours=2))
        (task,) = self.me("grace")["needs_attention"]
        self.assertEqual((task["id"], task["attention"]), (self.scene.pending.id, "pending for 2 h"))
        page = text(self.client.get("/me/"))
        self.assertLess(page.index("Needs attention"), page.index("Live tasks"))
        self.assertIn("Pending for 2 h", page)
        self.assertIn(f'href="/tasks/{self.scene.pending.id}/brokerage/"', page)

    def test_a_task_whose_jobs_fail_is_told_before_a_file_is_given_up(self) -> None:
        (queue,) = grid("EPSILON")
        task = submitted(
            parameters("mc23.evgen.scouts", nEvents=60, nEventsPerJob=10, maxAttempt=5, userName="lin", site="EPSILON")
        )
        run_agents(1)
        for n in range(1, 6):
            self.assertEqual(self.me("lin")["needs_attention"], [])
            while (leased := try_take(queue)) is not None and leased.task_id != task.id:
                end(leased)
            assert leased is not None
            end(leased, BAD)
            self.assertEqual(Task.objects.get(id=task.id).status, "running", n)
        (told,) = self.me("lin")["needs_attention"]
        self.assertEqual((told["id"], told["attention"], told["files_failed"]), (task.id, "all 5 ended jobs failed", 0))

    def test_who_has_no_task_is_told_so(self) -> None:
        self.assertEqual(self.me("newcomer")["live"], [])
        page = text(self.client.get("/me/"))
        self.assertIn("Nothing needs your attention", page)
        self.assertIn("No task of yours is alive", page)
        self.assertIn('<a href="/tasks/submit/">Submit one</a>', page)

    def test_who_may_not_submit_is_not_sent_to_the_form(self) -> None:
        self.client.force_login(ensure_user("looker", password=PASSWORD, roles=[("demo", "auditor")]))
        self.assertNotIn("/tasks/submit/", text(self.client.get("/me/")))

    def test_only_its_own_entry_of_the_navigation_is_the_current_one(self) -> None:
        self.me("newcomer")
        navigation = text(self.client.get("/me/")).split("</nav>")[0]
        self.assertEqual(navigation.count("aria-current"), 1)

    def test_tasks_of_vos_that_one_may_not_look_into_are_not_shown(self) -> None:
        Task.objects.filter(id=self.scene.running.id).update(user_name="stranger")
        self.assertEqual(self.me("stranger", "other")["live"], [])
