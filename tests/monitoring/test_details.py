"""The pages of one thing: task, job, why; and what holds for every page."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import ClassVar

from django.db import connection
from django.test import Client, TestCase
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.kernel import clock
from brokerage.models import (
    ComputingQueue,
    Decision,
    Job,
    JobResult,
    JobRetryHistory,
    JobSpec,
    LocalOverride,
    Pilot,
    StoredSnapshot,
)
from tests.monitoring.answers import MOST_STATEMENTS, counted, text
from tests.pages.scene import Scene, make_scene, visitor
from workqueues.models import Task

MOST_OF_A_WAITING_JOB = 22
"""Where it stands and which asks passed it by: seven more."""
MOST_OF_A_WHAT_IF = 26
"""A what-if asks what the brokerage asks in a cycle, the whole grid, whatever its size; and it opens a transaction of its own."""


class Details(TestCase):
    scene: ClassVar[Scene]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.scene = make_scene()

    def setUp(self) -> None:
        self.client.force_login(visitor())

    def page(self, address: str) -> str:
        answer = self.client.get(address)
        self.assertEqual(answer.status_code, 200, address)
        return text(answer)

    @property
    def what_if(self) -> str:
        return f"/tasks/{self.scene.pending.id}/brokerage/what-if/"

    def addresses(self) -> list[str]:
        """Every page that there is, of every kind of task and job."""
        tasks = [task.id for task in Task.objects.all()]
        jobs = [Job.objects.filter(status=status).earliest("id").id for status in ("finished", "failed", "running", "activated")]
        one = ["/", "/tasks/", "/jobs/", "/queues/", "/agents/", "/throughput/", "/throughput/?window=7d&by=share"]
        one += [f"/tasks/{self.scene.running.id}/brokerage/?queue=GAMMA"]
        one += [f"/queues/{name}/" for name in self.scene.queues]
        one += [f"{self.what_if}{query}" for query in ("", "?ramCount=4000")]
        return one + [f"/tasks/{i}/{end}" for i in tasks for end in ("", "brokerage/")] + [f"/jobs/{i}/" for i in jobs]

    def test_every_page_is_made_with_few_statements_and_nothing_from_outside_or_inline(self) -> None:
        for address in self.addresses():
            with self.subTest(address=address), CaptureQueriesContext(connection) as statements:
                page = self.page(address)
                most = MOST_STATEMENTS if not address.startswith(self.what_if) else MOST_OF_A_WHAT_IF
                most = MOST_OF_A_WAITING_JOB if 'id="standing"' in page else most
                self.assertLessEqual(counted(statements), most)
                self.assertNotRegex(page, r"<style|\sstyle=|\son\w+=|<script(?![^>]* src=)|javascript:")
                self.assertNotRegex(page, r"https?://(?!testserver)")
                self.assertRegex(page, r'as of <time datetime="[^"]+Z">\d\d:\d\d:\d\d UTC</time>')
                self.assertEqual(len(re.findall("<table", page)), len(re.findall("<caption", page)))
                self.assertNotRegex(page, r"<th(?![^>]*scope=)[\s>]")

    def test_every_part_that_is_fetched_again_is_that_part_alone(self) -> None:
        for address in self.addresses():
            panel = text(self.client.get(address, headers={"HX-Request": "true"}))
            self.assertNotIn("<html", panel)
            self.assertRegex(panel.strip(), r'^<\w+ id="panel"')

    def test_what_has_ended_is_not_fetched_again_and_what_is_paused_neither(self) -> None:
        for address, live in (
            (f"/tasks/{self.scene.running.id}/", True),
            (f"/tasks/{self.scene.done.id}/", False),
            (f"/tasks/{self.scene.done.id}/brokerage/", False),
            ("/tasks/", True),
            ("/tasks/?live=off", False),
        ):
            self.assertEqual('hx-trigger="every' in self.page(address), live, address)

    def test_a_task_shows_its_progress_datasets_jobs_history_and_parameters(self) -> None:
        page = self.page(f"/tasks/{self.scene.running.id}/")
        self.assertIn('aria-label="2 done, 0 failed, 28 in jobs, 0 left"', page)
        self.assertRegex(page, r"28 in jobs: \d+ jobs wait, \d+ runs?<")
        for part in ("mc23.evgen.0002.EVT", "pseudo_input", "30 jobs made", "agent:generate", "--seed ${RNDMSEED}", "grace"):
            self.assertIn(part, page)
        self.assertEqual(
            page.count('href="/jobs/'),
            30 + 1 + len({*Job.objects.filter(task_id=self.scene.running.id).values_list("status")}) + 2,
        )

    def test_a_task_that_failed_tells_the_errors_of_its_jobs_by_code_on_every_way(self) -> None:
        page = self.page(f"/tasks/{self.scene.failed.id}/")
        sentence = "3 of 3 jobs ended with PAYLOAD_EXIT: exit code 1"
        self.assertIn(sentence, page)
        jobs = '<td class="num" data-label="Jobs">3</td><td class="name" data-label="Mostly">exit code 1 <a'
        self.assertRegex(page, f'(?s)id="errors".*>PAYLOAD_EXIT</a></th>{jobs}')
        self.assertIn(sentence, self.page(f"/tasks/{self.scene.failed.id}/brokerage/"))
        answer = self.client.get(f"/api/v1/tasks/{self.scene.failed.id}/waiting/").json()
        self.assertIn(sentence, answer["headline"])
        self.assertEqual(
            [(e["code"], e["n_jobs"], e["message"]) for e in answer["job_errors"]], [("PAYLOAD_EXIT", 3, "exit code 1")]
        )

    def test_the_line_that_tells_stands_in_lists_and_the_others_at_the_job(self) -> None:
        job = Job.objects.filter(task_id=self.scene.failed.id).latest("id")
        message = "ValueError: no events (exit code 1)\nTraceback (most recent call last):\nFile a.py"
        found = {"items": ["<i>"]}
        JobResult.objects.filter(job_id=job.id).update(
            error_message=message, log_end="--- stderr ---\nall <b>of it\n", metadata=found
        )
        row = re.findall(r"<strong>PAYLOAD_EXIT</strong> ([^<]*)<", self.page(f"/jobs/?task={job.task_id}"))
        self.assertIn("ValueError: no events (exit code 1)", row)
        page = self.page(f"/jobs/{job.id}/")
        self.assertIn("Traceback (most recent call last):\nFile a.py</pre>", page)
        self.assertRegex(page, r'(?s)id="metadata".*&quot;items&quot;: \[\s*&quot;&lt;i&gt;&quot;')
        self.assertEqual(self.client.get(f"/api/v1/jobs/{job.id}/").json()["result"]["metadata"], found)
        self.assertIn(f'href="/jobs/{job.id}/log/"', page)
        self.assertIn("all &lt;b&gt;of it", self.page(f"/jobs/{job.id}/log/"))

    def test_a_task_with_many_jobs_shows_them_page_by_page(self) -> None:
        row = Job.objects.filter(task_id=self.scene.running.id).latest("id")
        places = {"task_queue_id": row.task_queue_id, "computing_queue_id": row.computing_queue_id}
        added = Job.objects.bulk_create(
            Job(id=row.id + i, task_id=row.task_id, status="activated", ready_priority=0, **places) for i in range(1, 60)
        )
        JobSpec.objects.bulk_create(JobSpec(job=job, job_name=f"more.{job.id}", vo="demo") for job in added)
        page = self.page(f"/tasks/{self.scene.running.id}/")
        (older,) = re.findall(r'rel="next" href="([^"]+)"', page)
        numbers = r'<th scope="row" class="num"><a href="/jobs/(\d+)/"'
        both = re.findall(numbers, page) + re.findall(numbers, self.page(older))
        self.assertEqual(
            [int(i) for i in both], sorted(Job.objects.filter(task_id=row.task_id).values_list("id", flat=True), reverse=True)
        )

    def test_a_job_says_where_it_ran_when_its_pilot_is_forgotten(self) -> None:
        job = Job.objects.filter(status="finished").earliest("id")
        Pilot.objects.all().delete()
        self.assertIn("It ran at node1", self.page(f"/jobs/{job.id}/"))

    def test_a_job_shows_its_states_files_pilot_and_tries(self) -> None:
        link = JobRetryHistory.objects.earliest("id")
        page = self.page(f"/jobs/{link.old_job_id}/")
        for part in ("PAYLOAD_EXIT", "exit code 1", "mc23.input.EVNT.0000", "returned", "pilot reports failed", "node1"):
            self.assertIn(part, page)
        self.assertIn(f'href="/jobs/{link.new_job_id}/"', page)
        finished = Job.objects.filter(status="finished").earliest("id")
        page = self.page(f"/jobs/{finished.id}/")
        self.assertIn(f"{finished.placed_at.name}_DISK", page)
        self.assertIn("0000000a", page)

    def test_what_the_pilot_measured_has_words_and_units(self) -> None:
        job = Job.objects.filter(status="finished").earliest("id")
        JobResult.objects.filter(job=job).update(metrics={"cpu_s": 7200, "max_rss_mb": 1500, "work_mb": 1.2, "hits": 70000})
        page = self.page(f"/jobs/{job.id}/").replace("\N{NARROW NO-BREAK SPACE}", " ").split('id="measured"')[1]
        self.assertEqual(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page), [
            ("CPU time", "2 h"), ("Peak memory (RSS)", "1.5 GB"),
            ("Peak use of the working folder", "1.2 MB"), ("Hits", "70,000"),
        ])  # fmt: skip

    def test_a_job_that_waits_says_how_long_so_far_and_one_that_runs_how_long_it_waited(self) -> None:
        waiting = Job.objects.filter(status="activated").earliest("id")
        running = Job.objects.filter(status="running").earliest("id")
        now = clock.now()
        JobSpec.objects.filter(job__in=[waiting, running]).update(created_at=now - timedelta(minutes=50))
        Job.objects.filter(id=running.id).update(status_since=now - timedelta(minutes=10))
        self.assertRegex(self.page(f"/jobs/{waiting.id}/"), r"<dt>Waited</dt><dd>50.min so far</dd>")
        self.assertRegex(self.page(f"/jobs/{running.id}/"), r"<dt>Waited</dt><dd>40.min</dd>")
        self.assertRegex(self.page("/jobs/?status=activated"), r'<td class="num nowrap"[^>]*>50.min so far</td>')

    def test_page_and_rest_call_the_inputs_and_tries_of_a_job_the_same(self) -> None:
        link = JobRetryHistory.objects.earliest("id")
        whole = self.client.get(f"/api/v1/jobs/{link.new_job_id}/").json()
        page = self.page(f"/jobs/{link.new_job_id}/")
        self.assertEqual(whole["retry_of"], [link.old_job_id])
        self.assertIn('<th scope="col">Retry of</th>', page)
        self.assertIn('<th scope="col">Use</th>', page)
        for used in whole["inputs"]:
            self.assertRegex(page, rf"{re.escape(used['lfn'])}</th>.*</span>{used['use']}</span>")
        self.assertEqual("not tracked" in page, not all(used["tracked"] for used in whole["inputs"]))

    def test_why_a_task_waits_is_told_in_one_line_and_for_every_queue(self) -> None:
        page = self.page(f"/tasks/{self.scene.pending.id}/brokerage/")
        self.assertIn("a job needs 57600 MB, a slot gives 8000 MB", page)
        self.assertRegex(page, r"Pending until \d\d:\d\d:\d\d UTC: none of 4 queues can ever take it")
        self.assertEqual(page.count('class="mark first lasting"') - 1, 4)  # one more in the legend
        self.assertIn("4 → 3 → 0", page)
        self.assertIn("no: every queue fails something that no waiting can mend", page)
        self.assertRegex(page, r"<dt>Grid that it saw</dt><dd><time")
        columns = re.findall(r'<th scope="col" title="([^"]+)"><span>(-disk(?: \d)?)</span>', page)
        self.assertEqual([label for _, label in columns], ["-disk", "-disk 2", "-disk 3"])
        self.assertGreater(len({asks for asks, _ in columns}), 1)
        for name in self.scene.queues:
            self.assertIn(f">{name}</a>", page)
        self.assertIn("its status is offline, not online", page)
        self.assertIn("a job needs 57600 MB", self.page(f"/tasks/{self.scene.pending.id}/"))

    def test_one_queue_is_told_criterion_by_criterion(self) -> None:
        page = self.page(f"/tasks/{self.scene.pending.id}/brokerage/?queue=GAMMA")
        self.assertIn("need_mb = 57,600, maxrss = 2,000", page)
        self.assertIn("took no part in this decision", self.page(f"/tasks/{self.scene.pending.id}/brokerage/?queue=NOWHERE"))

    def test_a_skip_says_what_would_change_it_and_links_to_what_if(self) -> None:
        address = f"/tasks/{self.scene.pending.id}/brokerage/what-if/?change=queue.GAMMA.maxrss%3D57600"
        self.assertIn(f'href="{address}"', self.page(f"/tasks/{self.scene.pending.id}/brokerage/?queue=GAMMA"))
        page = self.page(address)
        self.assertIn("1 of 4 queues taken; the best is GAMMA", page)
        self.assertRegex(page, r'<th scope="row">GAMMA</th>.*-lowmemory.*chosen')

    def test_the_matrix_is_narrowed_by_name_criterion_and_outcome_and_paged(self) -> None:
        base = f"/tasks/{self.scene.pending.id}/brokerage/"
        for query, names in (
            ("?name=a", {"ALPHA", "BETA", "GAMMA", "DELTA"}),
            ("?name=*TA", {"BETA", "DELTA"}),
            ("?name=gam", {"GAMMA"}),
            ("?criterion=-status", {"DELTA"}),
            ("?criterion=-lowmemory", {"ALPHA", "BETA", "GAMMA"}),
            ("?criterion=-lowmemory&how=any", {"ALPHA", "BETA", "GAMMA", "DELTA"}),
            ("?criterion=-lowmemory&how=alone", {"ALPHA", "BETA", "GAMMA"}),
            ("?show=skipped&name=ALPHA", {"ALPHA"}),
            ("?page=99999&show=nonsense&how=nonsense", {"ALPHA", "BETA", "GAMMA", "DELTA"}),
        ):
            matrix = self.page(base + query).partition('<table class="matrix">')[2].partition("</table>")[0]
            self.assertEqual(set(re.findall(r'<th scope="row"><a [^>]+>(\w+)</a>', matrix)), names, query)
        self.assertIn("No queue matches the filter", self.page(f"{base}?show=chosen"))

    def test_what_if_tells_what_is_different_in_words_and_units(self) -> None:
        page = self.page(f"{self.what_if}?ramCount=4000&change=queue.GAMMA.maxrss%3D57600")
        self.assertIn("With memory 4,000 MB (is 64,000)", page)
        self.assertIn("Memory, MB</label>", page)
        self.assertIn("queue.GAMMA.maxrss</span> = 57,600", page)
        Task.objects.filter(id=self.scene.pending.id).update(ram_unit="MBPerCore")
        page = self.page(f"{self.what_if}?ramCount=4000")
        self.assertIn("With memory 4,000 MB a core (is 64,000)", page)
        self.assertIn("Memory, MB a core</label>", page)

    def test_what_if_refuses_what_makes_no_sense_with_field_and_rule(self) -> None:
        address = (
            f"/tasks/{self.scene.pending.id}/brokerage/what-if/?ramCount=lots&change=config.NOPE%3D1%0Aqueue.DELT.status%3Donline"
        )
        answer = self.client.get(address)
        self.assertEqual(answer.status_code, 400)
        page = text(answer)
        for part in ("expected a number", "reads no configuration key", "the nearest known one is DELTA", 'value="lots"'):
            self.assertIn(part, page)
        self.assertIn("was ignored", self.page(f"/tasks/{self.scene.pending.id}/brokerage/what-if/?ramcount=1"))

    def test_a_what_if_writes_nothing_and_says_when_there_is_nothing_to_decide(self) -> None:
        before = list(Decision.objects.order_by("id").values_list("id", "n_times", "last_at"))
        self.page(f"/tasks/{self.scene.pending.id}/brokerage/what-if/?ramCount=4000")
        self.assertEqual(list(Decision.objects.order_by("id").values_list("id", "n_times", "last_at")), before)
        page = self.page(f"/tasks/{self.scene.done.id}/brokerage/what-if/")
        self.assertIn("Nothing would be decided now", page)
        self.assertIn("The task has ended: done", page)

    def test_a_queue_says_why_it_gets_the_work_that_it_gets(self) -> None:
        page = self.page("/queues/DELTA/")
        self.assertIn("Empty: the queue is offline.", page)
        why = f"/tasks/{self.scene.pending.id}/brokerage/"
        self.assertRegex(page, rf'-status</th>.*◷ may come back</td>.*href="{why}\?decision=\d+&amp;queue=DELTA#asked"')
        page = self.page("/queues/GAMMA/")
        self.assertRegex(page, r"latest decisions? took it")
        self.assertEqual(self.client.get("/queues/NOWHERE/").status_code, 404)
        self.assertIn('href="/queues/GAMMA/"', self.page("/queues/"))

    def test_a_queue_shows_what_operators_set_by_hand_and_what_a_feed_says_is_wrong(self) -> None:
        LocalOverride.objects.create(
            kind="queue", name="GAMMA", attribute="maxrss", value="2000", reason="broken fans", who="ada"
        )
        ComputingQueue.objects.filter(name="GAMMA").update(fault="maxrss: expected a number", gone_at=clock.now())
        page = self.page("/queues/GAMMA/")
        self.assertIn("broken fans", page)
        self.assertIn("maxrss: expected a number", page)
        self.assertIn("Its document no longer has it", page)
        self.assertNotIn("broken fans", self.page("/queues/ALPHA/"))

    def test_a_running_task_tells_the_weights_of_the_chosen_and_where_its_jobs_wait(self) -> None:
        page = self.page(f"/tasks/{self.scene.running.id}/brokerage/")
        self.assertIn("running_over_all_queued", page)
        self.assertRegex(page, r"\d+ jobs? waits? at \w+ for a free pilot that suits (it|them)")

    def test_a_decision_is_told_as_far_as_it_goes_when_its_snapshot_is_gone_or_it_cannot_be_read(self) -> None:
        Decision.objects.update(snapshot=None)
        StoredSnapshot.objects.all().delete()
        page = self.page(f"/tasks/{self.scene.pending.id}/brokerage/")
        self.assertIn("only what the decision itself holds can be told", page)
        self.assertIn("-lowmemory", page)
        Decision.objects.update(record=b"\xffold")
        self.assertIn("cannot be read", self.page(f"/tasks/{self.scene.pending.id}/brokerage/"))

    def test_earlier_decisions_have_addresses_and_those_of_other_tasks_are_not_shown(self) -> None:
        (mine,) = Decision.objects.filter(task_id=self.scene.pending.id)
        other = Decision.objects.exclude(task_id=self.scene.pending.id).earliest("id")
        base = f"/tasks/{self.scene.pending.id}/brokerage/?decision="
        self.assertIn(f"Decision {mine.id}", self.page(f"{base}{mine.id}"))
        for wrong in (other.id, 10**15, "x", "-1", "99999999999999999999"):
            self.assertEqual(self.client.get(f"{base}{wrong}").status_code, 404)

    def test_a_task_without_a_decision_says_what_comes(self) -> None:
        page = self.page(f"/tasks/{self.scene.fresh.id}/brokerage/")
        self.assertIn("No decision of the brokerage yet", page)
        self.assertIn("Registered: the task is accepted", page)

    def test_commands_are_offered_to_who_may_give_them_in_a_state_that_takes_them(self) -> None:
        for name, role, task, offered in (
            ("ada", "operator", self.scene.running, {"finish", "kill", "pause", "retry"}),
            ("grace", "submitter", self.scene.running, {"finish", "kill", "pause", "retry"}),
            ("bob", "submitter", self.scene.running, set()),
            ("carl", "auditor", self.scene.running, set()),
            ("ada", "operator", self.scene.failed, {"retry", "incexec", "reload_input"}),
            ("ada", "operator", self.scene.done, {"incexec", "reload_input"}),
        ):
            self.client.force_login(visitor(name, role))
            found = re.findall(rf'action="/tasks/{task.id}/command/(\w+)/"', self.page(f"/tasks/{task.id}/"))
            self.assertEqual(set(found), offered, (name, task.status))

    def test_a_command_comes_back_to_the_task_with_what_became_of_it(self) -> None:
        answer = self.client.post(f"/tasks/{self.scene.running.id}/command/kill/", follow=True)
        self.assertEqual(answer.redirect_chain[-1][0], f"/tasks/{self.scene.running.id}/")
        self.assertIn("is being killed", text(answer))
        self.assertIn("aborting", text(answer))

    def test_another_vo_gets_404_for_what_it_may_not_know_of(self) -> None:
        self.client.force_login(ensure_user("eve", roles=[("other", "operator")]))
        job = Job.objects.earliest("id").id
        for address in (f"/tasks/{self.scene.done.id}/", f"/tasks/{self.scene.done.id}/brokerage/", f"/jobs/{job}/"):
            self.assertEqual(self.client.get(address).status_code, 404)
        run_agent("tally", looked=True)
        home = self.page("/")
        self.assertIn("No task yet", home)
        self.assertNotIn("mc23", home)

    def test_home_counts_and_names_what_waits_and_which_agent_is_not_well(self) -> None:
        with connection.cursor() as cursor:  # a snapshot shows what its own transaction wrote only behind one that has ended
            cursor.execute("SAVEPOINT other; SELECT FROM brokerage_site FOR UPDATE; ROLLBACK TO SAVEPOINT other")
        run_agent("tally", looked=True)
        page = self.page("/")
        n = Job.objects.filter(status="activated").count()
        self.assertRegex(page, rf"activated</span></a></th><td class=\"num\">{n}<")
        self.assertIn("mc23.simul.bigmem", page)
        self.assertIn("All 28 agents are well", page)
        Agent.objects.filter(name="reap").update(last_error_at="2100-01-01T00:00:00Z", last_error="OperationalError: gone")
        self.assertIn("1 of 28 agents need", self.page("/").replace("needs", "need"))
        self.assertIn("OperationalError: gone", self.page("/agents/"))

    def test_home_names_a_task_that_no_site_could_take_yet(self) -> None:
        fresh = Task.objects.get(pk=self.scene.fresh.pk)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE workqueues_task SET status = 'defined' WHERE id = %s", [fresh.id])
            cursor.execute("UPDATE workqueues_task SET status = 'assigning' WHERE id = %s", [fresh.id])
        self.assertNotIn(f'<a href="/tasks/{fresh.id}/">', self.page("/"), "it was not looked at yet")
        Task.objects.filter(pk=fresh.id).update(error_dialog="the only site does not pass now")
        page = self.page("/")
        self.assertIn(f'<a href="/tasks/{fresh.id}/">', page)
        self.assertIn("the only site does not pass now", page)

    def test_pilots_texts_are_shown_as_text(self) -> None:
        job = Job.objects.filter(status="failed").earliest("id")
        job.result.error_message = "<script>alert(1)</script>"
        job.result.save()
        for address in (f"/jobs/{job.id}/", "/jobs/"):
            self.assertIn("&lt;script&gt;alert(1)", self.page(address))


class Refusals(TestCase):
    """Pages that say no, and what every visitor can do."""

    def setUp(self) -> None:
        self.client.force_login(visitor())

    def test_what_is_not_there_is_told_with_a_trace_id_and_as_a_problem_to_programs(self) -> None:
        for address in ("/tasks/99/", "/jobs/99/", f"/tasks/{10**30}/", "/tasks/99/brokerage/"):
            answer = self.client.get(address)
            self.assertEqual(answer.status_code, 404)
            self.assertIn(f"<code>{answer['X-Trace-Id']}</code>", text(answer))
        self.assertIn("There is no task 99", text(self.client.get("/tasks/99/")))
        self.assertIn("Nothing is at this address", text(self.client.get("/nowhere/")))
        problem = json.loads(self.client.get("/nowhere.json").content)
        self.assertEqual((problem["status"], bool(problem["trace_id"])), (404, True))

    def test_a_fault_is_told_without_the_database_and_without_its_innards(self) -> None:
        client = Client(raise_request_exception=False)
        client.force_login(visitor())
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE agency_agent RENAME TO agency_gone")
        answer = client.get("/agents/")
        self.assertEqual(answer.status_code, 500)
        self.assertIn("fault of the server", text(answer))
        self.assertNotIn("agency_", text(answer))

    def test_a_form_from_elsewhere_is_refused(self) -> None:
        client = Client(enforce_csrf_checks=True)
        client.force_login(visitor())
        answer = client.post("/appearance/", {"appearance": "dark"})
        self.assertEqual(answer.status_code, 403)
        self.assertIn("Form expired", text(answer))

    def test_the_appearance_is_kept_in_a_cookie_and_rendered_by_the_server(self) -> None:
        self.assertIn('data-appearance="auto"', text(self.client.get("/")))
        answer = self.client.post("/appearance/", {"appearance": "dark", "next": "/jobs/?status=failed"})
        self.assertRedirects(answer, "/jobs/?status=failed")
        self.assertIn('data-appearance="dark"', text(self.client.get("/")))
        self.assertEqual(self.client.post("/appearance/", {"next": "https://evil.example/"})["Location"], "/")
        self.assertIn('data-appearance="auto"', text(self.client.get("/")))

    def test_style_sheet_scripts_and_mark_are_served(self) -> None:
        page = text(self.client.get("/"))
        files = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
        self.assertEqual(len(files), 5)
        for file in files:
            self.assertEqual(self.client.get(file).status_code, 200, file)

    def test_the_state_of_an_empty_system_says_what_to_do(self) -> None:
        page = text(self.client.get("/"))
        for said in ("No task yet", "No queue yet", "Nothing waits", "No agent has run yet"):
            self.assertIn(said, page)
        self.assertIn("Submit one with", text(self.client.get("/tasks/")))
