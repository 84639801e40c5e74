"""A decision over a thousand queues: its pages stay light, and ask as little as those of a small one."""

from __future__ import annotations

import gzip

from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from brokerage.models import ComputingQueue, QueueStorage, Site, StorageEndpoint
from tests.builders import parameters, submitted
from tests.flow.steps import run_agents
from tests.monitoring.answers import MOST_STATEMENTS, counted, text
from tests.pages.scene import visitor
from workqueues.models import Task

QUEUES = 1000
MOST_BYTES = 120_000
"""Of a first load, compressed."""


class BigGrid(TestCase):
    task: Task

    @classmethod
    def setUpTestData(cls) -> None:
        Site.objects.create(name="S")
        StorageEndpoint.objects.create(name="S_DISK", site_id="S", free_gb=5000, path="/x")
        ComputingQueue.objects.bulk_create(
            ComputingQueue(
                name=f"Q{i:04}",
                site_id="S",
                type="unified",
                status="offline" if i % 5 == 0 else "online",
                maxrss=2000 + i,
                maxtime=86400 * 2,
                attributes={"releases": ["ANY"]},
            )
            for i in range(QUEUES)
        )
        QueueStorage.objects.bulk_create(
            QueueStorage(queue=queue, storage_id="S_DISK", access=access, position=1)
            for queue in ComputingQueue.objects.all()
            for access in ("read_lan", "write_lan")
        )
        cls.task = submitted(parameters(ramCount=9000))
        run_agents(1)

    def setUp(self) -> None:
        self.client.force_login(visitor())

    def page(self, address: str, most: int = MOST_STATEMENTS) -> str:
        with CaptureQueriesContext(connection) as statements:
            answer = self.client.get(address)
        self.assertEqual(answer.status_code, 200)
        self.assertLessEqual(counted(statements), most)
        self.assertLessEqual(len(gzip.compress(answer.content)), MOST_BYTES)
        return text(answer)

    def test_the_matrix_comes_page_by_page(self) -> None:
        base = f"/tasks/{self.task.id}/brokerage/"
        first, last = self.page(base), self.page(f"{base}?page=25")
        for page, number in ((first, 1), (last, 25)):
            matrix = page.partition('<table class="matrix">')[2].partition("</table>")[0]
            self.assertEqual(matrix.count('<tr><th scope="row">'), 40)
            self.assertIn(f"page {number} of 25", page)
        self.assertIn("1,000", first)
        offline = self.page(f"{base}?criterion=-status")
        self.assertIn("200 of 1,000", offline)

    def test_a_what_if_and_a_queue_are_light_too(self) -> None:
        page = self.page(f"/tasks/{self.task.id}/brokerage/what-if/?change=queue.*.status%3Donline", most=26)
        self.assertIn("200 of 1,000 queues", page)
        self.assertIn("<strong>200</strong>", page)
        self.assertIn("0 of 1 latest decisions took it; 1 skipped it by -lowmemory.", self.page("/queues/Q0001/"))
