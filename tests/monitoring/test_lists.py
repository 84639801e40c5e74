"""The lists as people and programs get them: page, JSON and CSV with the same rows, filters, places, rights, statement counts."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any, ClassVar
from unittest.mock import patch

from django.db import connection
from django.db.models import Max, Min
from django.test import Client, TestCase
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.kernel import clock
from broker_site.foundation.rest import keyset
from brokerage.models import Feed, Job
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import parameters, submitted
from tests.monitoring.answers import MOST_STATEMENTS, counted, shown, text
from tests.pages.scene import Scene, make_scene, visitor
from workqueues.models import Task

LISTS = ("tasks", "jobs", "queues", "agents")


class Lists(TestCase):
    scene: ClassVar[Scene]

    @classmethod
    def setUpTestData(cls) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval('brokerage_job_id_seq', nextval('brokerage_job_id_seq') + 3000)")  # a gap below
        cls.scene = make_scene()

    def setUp(self) -> None:
        self.client.force_login(visitor())

    def rows(self, address: str) -> list[dict[str, Any]]:
        answer = self.client.get(address)
        self.assertEqual(answer.status_code, 200, text(answer))
        return json.loads(answer.content)["rows"]

    def test_page_json_and_csv_have_the_same_rows_in_the_same_order(self) -> None:
        scouts = Job.objects.filter(status="failed")[:2]
        Job.objects.filter(id__in=[job.id for job in scouts]).update(kind=JobKind.SCOUT)
        badly_at_gamma = Job.objects.filter(status__in=["failed", "cancelled"], computing_queue__name="GAMMA").count()
        for name, query, n in (
            ("tasks", "", 7),
            ("tasks", "?status=pending&status=running", 3),
            ("tasks", "?status=done,failed", 2),
            ("tasks", "?task_name=mc23.evgen.*&user_name=grace", 2),
            ("tasks", "?task_name=mc23.evgen.000?", 3),
            ("tasks", "?task_name=mc23%25", 0),
            ("tasks", "?vo=nowhere", 0),
            ("jobs", "", 50),
            ("jobs", f"?task={self.scene.retrying.id}", 9),
            ("jobs", "?status=failed", 9),
            ("jobs", "?status=running", 1),
            ("jobs", "?kind=scout", 2),
            ("jobs", "?kind=normal&status=running", 1),
            (
                "jobs",
                "?status=failed&status=cancelled&queue=G*",
                badly_at_gamma,
            ),
            ("jobs", "?user_name=grace", 30),
        ):
            with self.subTest(name=name, query=query):
                page = shown(self.client.get(f"/{name}/{query}", follow=True), name)
                self.assertEqual(len(page), n)
                self.assertEqual(page, sorted(page, reverse=True))
                self.assertEqual(page, [row["id"] for row in self.rows(f"/{name}.json{query}")])
                lines = list(csv.DictReader(io.StringIO(text(self.client.get(f"/{name}.csv{query}")))))
                self.assertEqual(page, [int(line["id"]) for line in lines])

    def test_rows_say_how_far_a_task_is(self) -> None:
        (row,) = self.rows("/tasks.json?task_name=mc23.evgen.0002")
        self.assertEqual(
            {k: row[k] for k in ("status", "user_name", "vo", "files_finished", "files_failed", "files_in_jobs", "files_left")},
            {"status": "running", "user_name": "grace", "vo": "demo", "files_finished": 2, "files_failed": 0, "files_in_jobs": 28,
             "files_left": 0},
        )  # fmt: skip
        self.assertEqual((row["jobs_waiting"], row["jobs_running"]), (27, 1))
        page = text(self.client.get("/tasks/?task_name=mc23.evgen.0002"))
        self.assertIn("28 in jobs (27 wait, 1 runs)", page)
        self.assertRegex(row["creation_date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_an_address_with_a_slash_before_the_format_is_the_same(self) -> None:
        for name in LISTS:
            self.assertEqual(self.rows(f"/{name}/.json")[0].keys(), self.rows(f"/{name}.json")[0].keys())

    def test_the_accept_header_chooses_the_form_too(self) -> None:
        self.assertEqual(len(json.loads(self.client.get("/tasks/", headers={"Accept": "application/json"}).content)["rows"]), 7)
        self.assertTrue(text(self.client.get("/tasks/", headers={"Accept": "text/csv"})).startswith("id,task_name,"))
        self.assertIn("<!doctype html>", text(self.client.get("/tasks/", headers={"Accept": "text/html,*/*;q=0.8"})))

    def test_pages_follow_one_another_without_a_gap_and_back_again(self) -> None:
        everything = [row["id"] for row in self.rows("/jobs.json?limit=1000")]
        seen, address, pages = [], "/jobs.json?limit=20", []
        while address:
            answer = json.loads(self.client.get(address).content)
            seen += [row["id"] for row in answer["rows"]]
            pages.append([row["id"] for row in answer["rows"]])
            address, before = answer["next"], answer["previous"]
        self.assertEqual(seen, everything)
        self.assertEqual([row["id"] for row in self.rows(before)], pages[-2])
        self.assertIn("50", answer["count"])

    def test_a_place_stays_where_it_is_when_new_rows_come(self) -> None:
        first = json.loads(self.client.get("/tasks.json?limit=2").content)
        submitted(parameters("new"))
        older = Task.objects.filter(id__lt=first["rows"][-1]["id"]).order_by("-id").values_list("id", flat=True)[:2]
        self.assertEqual([row["id"] for row in self.rows(first["next"])], list(older))

    def test_a_rare_row_is_found_by_looking_further_a_bounded_step_at_a_time(self) -> None:
        rare = list(Job.objects.filter(status="failed").order_by("-id").values_list("id", flat=True))
        with patch.multiple(keyset, FIRST_WINDOW=30, MOST_WINDOWS=1, COUNT_WINDOW=30):
            page = text(self.client.get("/jobs/?status=failed"))
            self.assertIn("Look further", page)
            seen, address, looks = [], "/jobs.json?status=failed", 0
            while address:
                looks += 1
                answer = json.loads(self.client.get(address).content)
                seen += [row["id"] for row in answer["rows"]]
                address = answer["next"]
            self.assertEqual(seen, rare)
            self.assertIn("+", answer["count"])
            ids = Job.objects.aggregate(oldest=Min("id"), newest=Max("id"))
            # Numbers below the oldest job are not looked at, however many jobs have been archived.
            self.assertLessEqual(looks, (ids["newest"] - ids["oldest"]) // 30 + 2)
            lines = list(csv.DictReader(io.StringIO(text(self.client.get("/jobs.csv?status=failed")))))
            self.assertEqual([int(line["id"]) for line in lines], rare)

    def test_a_page_has_links_to_the_next_and_to_its_data(self) -> None:
        page = text(self.client.get("/jobs/?limit=20&status=activated"))
        self.assertIn('rel="next"', page)
        self.assertIn('href="/jobs.csv?status=activated&amp;limit=20"', page)
        activated = Job.objects.filter(status="activated").count()
        # With a plus where numbers are so high that there could be older ones: other tests of this run made many jobs.
        self.assertRegex(page, rf"<strong>{activated}\+?</strong> jobs")

    def test_a_form_with_blank_fields_leads_to_the_address_without_them(self) -> None:
        answer = self.client.get("/tasks/?task_name=&user=ada&vo=")
        self.assertRedirects(answer, "/tasks/?user_name=ada")

    def test_an_unknown_parameter_is_told_on_the_page_and_refused_in_data(self) -> None:
        self.assertIn("The parameter “statsu” is not known", text(self.client.get("/tasks/?statsu=done")))
        for ending in ("json", "csv"):
            answer = self.client.get(f"/tasks.{ending}?statsu=done")
            self.assertEqual((answer.status_code, answer["Content-Type"]), (400, "application/problem+json"))
            (error,) = json.loads(answer.content)["errors"]
            self.assertEqual((error["field"], error["rule"]), ("statsu", "unknown"))
            self.assertIn("status", error["message"])
        self.assertIn("“statsu” is not known", text(self.client.get("/tasks/?name=x&statsu=done", follow=True)))
        for address in ("/", "/queues/", f"/tasks/{self.scene.done.id}/", f"/tasks/{self.scene.done.id}/brokerage/"):
            self.assertIn("“odd” is not known", text(self.client.get(f"{address}?odd=1")), address)

    def test_what_cannot_be_used_is_refused_on_the_page_and_in_the_data(self) -> None:
        called = {"status": "Status", "task": "Task"}
        for query, fault in (
            ("status=undone", "status"),
            ("task=abc", "task"),
            ("task=99999999999999999999", "task"),
            ("cursor=x", "cursor"),
            ("limit=0", "limit"),
        ):
            page = self.client.get(f"/jobs/?{query}")
            self.assertEqual((page.status_code, shown(page, "jobs")), (400, []), query)
            self.assertIn(f"<strong>{called.get(fault, fault)}</strong>", text(page))
            for ending in ("json", "csv"):
                answer = self.client.get(f"/jobs.{ending}?{query}")
                self.assertEqual((answer.status_code, answer["Content-Type"]), (400, "application/problem+json"))
                self.assertEqual(json.loads(answer.content)["errors"][0]["field"], fault)

    def test_a_name_that_finds_nothing_offers_to_look_anywhere_in_the_text(self) -> None:
        page = text(self.client.get("/tasks/?task_name=reco"))
        self.assertIn('href="/tasks/?task_name=%2Areco%2A"', page)
        self.assertEqual(len(shown(self.client.get("/tasks/?task_name=%2Areco%2A"), "tasks")), 2)

    def test_no_list_needs_more_statements_than_it_may_whatever_its_rows(self) -> None:
        for name in LISTS:
            for address in (f"/{name}/", f"/{name}.json", f"/{name}.csv"):
                with CaptureQueriesContext(
                    connection,
                ) as statements:
                    text(self.client.get(address))
                self.assertLessEqual(counted(statements), MOST_STATEMENTS, address)

    def test_another_vo_sees_nothing_of_it(self) -> None:
        self.client.force_login(ensure_user("eve", roles=[("other", "operator")]))
        for name in ("tasks", "jobs"):
            for query in ("", "?vo=demo", "?user_name=*"):
                self.assertEqual(self.rows(f"/{name}.json{query}"), [])
                self.assertEqual(shown(self.client.get(f"/{name}/{query}"), name), [])
        self.assertEqual(self.rows(f"/jobs.json?task={self.scene.done.id}"), [])

    def test_who_has_no_role_is_told_so_and_who_is_nobody_signs_in_first(self) -> None:
        self.client.force_login(ensure_user("norole"))
        for name in LISTS:
            page, data = self.client.get(f"/{name}/"), self.client.get(f"/{name}.json")
            self.assertEqual((page.status_code, data.status_code), (403, 403))
            self.assertIn("Trace id", text(page))
            self.assertEqual(data["Content-Type"], "application/problem+json")
        nobody = Client()
        self.assertRedirects(nobody.get("/tasks/?status=done"), "/login/?next=/tasks/%3Fstatus%3Ddone")
        self.assertEqual(nobody.get("/tasks.json").status_code, 401)

    def test_only_reading_is_possible(self) -> None:
        for name in LISTS:
            self.assertEqual(self.client.post(f"/{name}/").status_code, 405)

    def test_the_page_of_queues_tells_how_old_the_grid_is(self) -> None:
        def page() -> str:
            return text(self.client.get("/queues/"))

        now, place = clock.now(), "http://127.0.0.1:1/q"
        self.assertNotIn("feed ", page().lower())
        feed = Feed.objects.create(name="cric", kind="cric-queues", place=place, good_at=now, data_at=now - timedelta(hours=3))
        self.assertIn("Feed cric: of 3 h ago.", page())
        Feed.objects.filter(pk=feed.pk).update(fault="timeout", fault_since=now, data_at=now - timedelta(hours=7))
        self.assertIn(f"Feed cric: of 7 h ago; failing since {now:%Y-%m-%d %H:%M:%S}: timeout; old", page())
        Feed.objects.filter(pk=feed.pk).update(data_at=now - timedelta(days=3))
        self.assertIn("timeout; too old to decide on: tasks wait", page())


class Plans(TestCase):
    """That a list of a big table goes down an index instead of through the table."""

    def test_lists_are_read_along_their_index(self) -> None:
        for rows in (
            Job.objects.order_by("-id")[:101],
            Job.objects.filter(task_id=7).order_by("-id")[:101],
            Job.objects.filter(id__lt=10**6, id__gte=9 * 10**5, status="failed").order_by("-id")[:101],
            Job.objects.filter(task_queue__vo__in=["demo"], id__lt=10**6, id__gte=9 * 10**5).order_by("-id")[:101],
            Task.objects.order_by("-id")[:101],
            Task.objects.filter(status__in=["pending"]).order_by("-id")[:101],
        ):
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off")
            plan = rows.explain()
            self.assertNotRegex(plan, r"Seq Scan on (brokerage_job|workqueues_task)\b")
            self.assertNotIn("Sort Key", plan)
