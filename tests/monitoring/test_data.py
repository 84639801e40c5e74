"""Datasets and files: their lists in all forms, and the pages of one, from a task down to where its files are."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any, ClassVar
from unittest.mock import patch

from django.test import TestCase

from broker_site.foundation.access.credentials import ensure_user
from brokerage.models import JobInput
from tests.monitoring.answers import shown, text
from tests.pages.scene import PASSWORD, Scene, make_scene, visitor
from workqueues.models import Dataset, File


class Data(TestCase):
    scene: ClassVar[Scene]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.scene = make_scene()

    def setUp(self) -> None:
        self.client.force_login(visitor())

    def rows(self, address: str) -> list[dict[str, Any]]:
        answer = self.client.get(address)
        self.assertEqual(answer.status_code, 200, text(answer))
        return json.loads(answer.content)["rows"]

    def dataset(self, **which: Any) -> Dataset:
        return Dataset.objects.get(task=self.scene.retrying, **which)

    def test_page_json_and_csv_have_the_same_rows_in_the_same_order(self) -> None:
        task, inputs = self.scene.retrying.id, self.dataset(type="input").id
        finished = File.objects.filter(dataset=inputs, status="finished").count()
        closed = Dataset.objects.filter(type="log", status__in=["done", "broken"])
        for name, query, n in (
            ("datasets", "?limit=200", Dataset.objects.count()),
            ("datasets", f"?task={task}", Dataset.objects.filter(task=task).count()),
            ("datasets", "?dataset_name=mc23.input.EVNT", 2),
            (
                "datasets",
                "?type=log&status=done,broken",
                closed.count(),
            ),
            ("datasets", "?vo=nowhere", 0),
            ("files", f"?dataset={inputs}", 6),
            ("files", f"?dataset={inputs}&status=finished", finished),
            ("files", "?lfn=mc23.input.EVNT*", File.objects.filter(lfn__startswith="mc23.input.EVNT").count()),
            ("files", f"?task={task}&type=input", File.objects.filter(task=task, type="input").count()),
        ):
            with self.subTest(name=name, query=query):
                page = shown(self.client.get(f"/{name}/{query}", follow=True), name)
                self.assertEqual(len(page), n)
                self.assertEqual(page, sorted(page, reverse=True))
                self.assertEqual(page, [row["id"] for row in self.rows(f"/{name}.json{query}")])
                lines = list(csv.DictReader(io.StringIO(text(self.client.get(f"/{name}.csv{query}")))))
                self.assertEqual(page, [int(line["id"]) for line in lines])

    def facets(self, address: str) -> dict[str, dict[str, str]]:
        """Facet -> value -> the number beside it, as the page has them."""
        answer = self.client.get(address, follow=True)
        return {
            name: dict(re.findall(r">([^<>]+?)(?: <span[^>]*>[^<]*</span>)?</a><span class=\"num\"[^>]*>([^<]*)</span>", part))
            for name, part in re.findall(r'<section aria-labelledby="facet-(\w+)">(.*?)</section>', text(answer), re.DOTALL)
        }

    def test_facets_count_what_the_filter_that_they_add_finds(self) -> None:
        task, dataset = self.scene.retrying.id, self.dataset(type="input").id
        for name, query in (("datasets", ""), ("files", ""), ("files", f"task={task}"), ("files", f"dataset={dataset}")):
            facets = self.facets(f"/{name}/?{query}")
            self.assertIn("status", facets)
            for by, numbers in facets.items():
                self.assertTrue(numbers, by)
                for value, n in numbers.items():
                    found = self.rows(f"/{name}.json?limit=1000&{by}={value}&{query}")
                    self.assertEqual(n, f"{len(found):,}", (name, query, by, value))
        self.client.force_login(ensure_user("eve", password=PASSWORD, roles=[("other", "operator")]))
        for address in ("/datasets/", "/files/", f"/files/?task={task}", f"/files/?dataset={dataset}"):
            self.assertEqual(self.facets(address), {}, f"{address} counts what others may not see")

    def test_facets_of_more_rows_than_are_looked_at_say_at_least(self) -> None:
        with patch("monitoring.queries.data_facets.MOST_LOOKED", 3), patch("monitoring.queries.data_facets.MOST_FILES", 2):
            for address in ("/datasets/", "/files/", f"/files/?task={self.scene.retrying.id}"):
                numbers = self.facets(address)["status"].values()
                self.assertTrue(numbers and all(n.endswith("+") for n in numbers), address)
            states = self.facets(f"/files/?dataset={self.dataset(type='input').id}")["status"]
            self.assertIn("2+", states.values())
            page = text(self.client.get("/files/", follow=True))
            self.assertIn('href="/files/?status=failed">failed</a></li>', page, "a state that was not met can be asked for")

    def test_the_way_leads_from_a_task_to_its_files_and_where_they_are(self) -> None:
        dataset = self.dataset(type="input")
        self.assertIn(f'href="/datasets/{dataset.id}/"', text(self.client.get(f"/tasks/{dataset.task_id}/")))
        page = text(self.client.get(f"/datasets/{dataset.id}/"))
        self.assertIn(f"/files/?dataset={dataset.id}", page)
        self.assertIn("GAMMA_DISK", page)
        file = File.objects.filter(dataset=dataset).earliest("id")
        self.assertIn(f'href="/files/{file.id}/"', text(self.client.get(f"/files/?dataset={dataset.id}", follow=True)))
        page = text(self.client.get(f"/files/{file.id}/"))
        for job in JobInput.objects.filter(file_id=file.id).values_list("job_id", flat=True):
            self.assertIn(f'href="/jobs/{job}/"', page)

    def test_what_a_task_only_counts_by_is_in_no_catalogue_and_is_no_other_tasks(self) -> None:
        numbered = Dataset.objects.get(task=self.scene.done, type="pseudo_input")
        self.assertTrue(Dataset.objects.filter(dataset_name=numbered.dataset_name).exclude(id=numbered.id).exists())
        page = text(self.client.get(f"/datasets/{numbered.id}/"))
        for told in ("Where its files are", "In the catalogue", "Other tasks with it"):
            self.assertNotIn(told, page)
        self.assertIn("made for this task alone, to count by", page)
        self.assertEqual(json.loads(self.client.get(f"/datasets/{numbered.id}.json").content)["others"], [])
        file = File.objects.filter(dataset=numbered).earliest("id")
        self.assertNotIn("No storage has the file", text(self.client.get(f"/files/{file.id}/")))

    def test_the_json_of_a_dataset_counts_its_files_by_state_and_their_copies_by_storage(self) -> None:
        dataset = self.dataset(type="input")
        told = json.loads(self.client.get(f"/datasets/{dataset.id}.json").content)
        states = File.objects.filter(dataset=dataset).values_list("status", flat=True)
        self.assertEqual(told["files_by_state"], {state: list(states).count(state) for state in set(states)})
        self.assertEqual({(c["storage"], c["files"]) for c in told["copies"] if c["storage"] != "ALPHA_DISK"},
                         {(f"{site}_DISK", 6) for site in ("BETA", "GAMMA", "DELTA")})  # fmt: skip
        self.assertEqual([other["task_id"] for other in told["others"]], [self.scene.failed.id])

    def test_an_output_names_the_job_that_made_it_and_its_copy(self) -> None:
        output = File.objects.filter(task=self.scene.done, type="output", status="finished").earliest("id")
        told = json.loads(self.client.get(f"/files/{output.id}.json").content)
        self.assertEqual((told["out_job_id"], told["lfn"], len(told["copies"])), (output.out_job_id, output.lfn, 1))
        self.assertIn(told["copies"][0]["storage"], text(self.client.get(f"/files/{output.id}/")))

    def test_who_may_not_look_into_the_vo_finds_nothing(self) -> None:
        self.client.force_login(ensure_user("eve", password=PASSWORD, roles=[("other", "operator")]))
        dataset = self.dataset(type="input")
        for address in (f"/datasets/{dataset.id}/", f"/datasets/{dataset.id}.json"):
            self.assertIn(self.client.get(address).status_code, (403, 404), address)

    def test_what_is_not_there_is_said(self) -> None:
        for address in ("/datasets/999999/", "/files/999999/"):
            answer = self.client.get(address)
            self.assertEqual(answer.status_code, 404)
            self.assertIn("There is no", text(answer))
