"""One box finds tasks, jobs, datasets, files, queues and owners, by number or by a part of a name."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.test import TestCase

from broker_site.foundation.access.credentials import ensure_user
from brokerage.models import Job
from tests.monitoring.answers import text
from tests.pages.scene import PASSWORD, Scene, make_scene, visitor
from workqueues.models import Dataset, File


class Search(TestCase):
    scene: ClassVar[Scene]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.scene = make_scene()

    def setUp(self) -> None:
        self.client.force_login(visitor())

    def found(self, what: str) -> list[tuple[str, str]]:
        answer = json.loads(self.client.get("/search.json", {"q": what}).content)
        return [(row["kind"], row["name"]) for row in answer["rows"]]

    def test_a_number_finds_all_that_has_it(self) -> None:
        number = self.scene.running.id
        self.assertEqual(
            [kind for kind, _ in self.found(f" {number} ")],
            [
                kind
                for kind, there in (
                    ("task", True),
                    ("job", Job.objects.filter(id=number).exists()),
                    ("dataset", Dataset.objects.filter(id=number).exists()),
                    ("file", File.objects.filter(id=number).exists()),
                )
                if there
            ],
        )

    def test_a_part_of_a_name_finds_tasks_and_datasets_newest_first(self) -> None:
        kinds = dict.fromkeys(kind for kind, _ in self.found("reco"))
        self.assertEqual(list(kinds), ["task", "dataset"])
        names = [name for kind, name in self.found("mc23.reco") if kind == "task"]
        self.assertEqual(names, [f"{t.id} {t.task_name}" for t in (self.scene.failed, self.scene.retrying)])

    def test_queues_and_owners_are_found(self) -> None:
        self.assertEqual(self.found("gamm"), [("queue", "GAMMA")])
        self.assertEqual(self.found("grace"), [("owner", "Tasks of grace")])

    def test_what_is_found_alone_is_shown_at_once(self) -> None:
        self.assertRedirects(self.client.get("/search/", {"q": "gamma"}), "/queues/GAMMA/", fetch_redirect_response=False)
        number = Job.objects.latest("id").id + 1000
        File.objects.filter(id=File.objects.latest("id").id).update(id=number)
        self.assertRedirects(self.client.get("/search/", {"q": number}), f"/files/{number}/", fetch_redirect_response=False)

    def test_nothing_found_and_too_short_are_said(self) -> None:
        for what, told in (("nothing-like-it", "Nothing found"), ("x", "Type 2 letters"), ("", "Look for anything")):
            self.assertIn(told, text(self.client.get("/search/", {"q": what})))
        hostile: tuple[Any, ...] = ("%", "_*?", "9" * 40, "<script>", "a" * 5000, "٣٤")
        for what in hostile:
            self.assertEqual(self.client.get("/search/", {"q": what}).status_code, 200, what)

    def test_nobody_finds_what_they_may_not_see(self) -> None:
        self.client.force_login(ensure_user("eve", password=PASSWORD, roles=[("other", "operator")]))
        self.assertEqual(self.found("mc23") + self.found(str(self.scene.running.id)) + self.found("grace"), [])
