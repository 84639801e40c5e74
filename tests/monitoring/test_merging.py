"""What the pages of a task and of its jobs tell of merging."""

from __future__ import annotations

import json

from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from brokerage.models import Job
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, run_agents, take
from tests.monitoring.answers import MOST_STATEMENTS, counted, text
from tests.pages.scene import visitor


class Merging(TestCase):
    def setUp(self) -> None:
        self.client.force_login(visitor())
        (self.queue,) = grid("ALPHA", path="/data")
        self.task = submitted(parameters(mergeOutput=True, nEvents=30))
        run_agents()
        for _ in range(2):
            end(take(self.queue))

    def page(self, address: str) -> str:
        with CaptureQueriesContext(connection) as statements:
            answer = self.client.get(address)
        self.assertEqual(answer.status_code, 200, address)
        self.assertLessEqual(counted(statements), MOST_STATEMENTS)
        return text(answer)

    def test_the_page_of_a_task_says_what_waits_to_be_merged_and_for_what(self) -> None:
        page = self.page(f"/tasks/{self.task.id}/")
        self.assertIn("2 jobs wait to be merged at SITE_ALPHA until its other job ends.", page)
        self.assertIn(">Merging<", page)
        end(take(self.queue))
        self.assertIn("3 jobs wait to be merged at SITE_ALPHA; the merge job is made next.", self.page(f"/tasks/{self.task.id}/"))
        run_agents(1, ("merge",))
        self.assertIn("3 jobs are being merged at SITE_ALPHA, by 1 job.", self.page(f"/tasks/{self.task.id}/"))

    def test_the_page_of_a_task_shows_the_files_before_the_merge_only_when_asked(self) -> None:
        page = self.page(f"/tasks/{self.task.id}/")
        self.assertNotIn("panda.um.", page)
        self.assertIn("?premerged=1", page)
        self.assertIn("panda.um.t1.EVT", self.page(f"/tasks/{self.task.id}/?premerged=1"))

    def test_what_is_merged_and_random_seeds_are_no_files_that_were_worked_through(self) -> None:
        end(take(self.queue))
        run_agents(1, ("merge",))
        end(take(self.queue))
        steps = json.loads(self.page(f"/tasks/{self.task.id}/plots.json"))["rows"]
        self.assertEqual([sum(step[what] for step in steps) for what in ("finished", "files", "events")], [4, 3, 30])

    def test_the_pages_of_jobs_say_which_merges_which(self) -> None:
        end(take(self.queue))
        run_agents(1, ("merge",))
        merge = Job.objects.get(kind=JobKind.MERGE)
        merged = Job.objects.filter(kind=JobKind.NORMAL).order_by("id")
        page = self.page(f"/jobs/{merge.id}/")
        self.assertIn("<dt>Merges</dt>", page)
        for job in merged:
            self.assertIn(f'<a href="/jobs/{job.id}/">{job.id}</a>', page)
        page = self.page(f"/jobs/{merged[0].id}/")
        self.assertIn("<dt>Merged by</dt>", page)
        self.assertIn(f'<a href="/jobs/{merge.id}/">{merge.id}</a>', page)
