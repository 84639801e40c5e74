"""Every typical query of seed 001 and every query of the hot paths is served by an index, whatever the tables hold.

The plans are PostgreSQL's own choice on filled and analysed tables. Where the code has the query, its function runs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

from django.db.models import F
from django.http import QueryDict
from django.test import TestCase, override_settings
from django.utils import timezone

from broker_site.foundation.access.authentication import forget_verified
from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.agency.run import BODIES, new_run
from broker_site.foundation.rest import keyset
from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger import (
    heartbeats,
    lease,
    memory_retry,
    merged_jobs,
    moves,
    reduced_input,
    retry_actions,
    settle,
    site_limits,
    submission,
)
from brokerage.ledger.capped_jobs import hold_back, let_go
from brokerage.ledger.expiry import expire_leases
from brokerage.ledger.paused_tasks import follow_pauses
from brokerage.ledger.pilots import note_pilots_at_work
from brokerage.ledger.placement_rounds import note_round
from brokerage.ledger.rebrokering import rebroker
from brokerage.ledger.reservation import reserve
from brokerage.ledger.transfers.delivery import finish_delivered
from brokerage.ledger.transfers.destinations import send_datasets
from brokerage.ledger.transfers.incomplete_logs import clean_logs
from brokerage.ledger.urgency import Urgency, raise_tasks
from brokerage.models import ComputingQueue, Job, JobRetryHistory
from brokerage.queries import job_document as offer
from brokerage.queries import movable_jobs
from brokerage.queries.automatic_steps import steps_of
from brokerage.queries.dataset_places import dataset_places
from brokerage.queries.decisions import latest
from brokerage.queries.failing_tasks import ended_jobs
from brokerage.queries.fast_rebrokerage import jobs_leaving, shares_at_queues
from brokerage.queries.held_slots import held_slots
from brokerage.queries.idle_jobs import idle_jobs
from brokerage.queries.idle_slots import idle_at_queues, idle_in_a_day, waiting_tasks
from brokerage.queries.jobs import inputs_of_job, job_counts, live_jobs, parts_of_job
from brokerage.queries.measurable_tasks import tasks_to_measure
from brokerage.queries.nearly_done import nearly_done
from brokerage.queries.owner_jobs import jobs_of_owners, tasks_to_throttle, throttled_tasks
from brokerage.queries.pilots import outcomes
from brokerage.queries.placement_rounds import last_change, recent_starts
from brokerage.queries.premerged import premerged_files, site_merges, stranded_merges, tasks_to_merge, waiting_to_merge
from brokerage.queries.retry_limits import figures_of
from brokerage.queries.share_use import running_now
from brokerage.queries.site_limits import advertised_sites
from brokerage.queries.stranded_jobs import queue_services, waiting_at
from brokerage.queries.submission import held_jobs, site_facts, still_waiting
from brokerage.queries.task_status import queue_loads, surroundings
from brokerage.queries.usable_input import peek, queues_of_failures
from brokerage.queries.waiting import WaitingWork
from brokerage.queries.withholdable_tasks import queues_at_data, withheld_tasks, withholdable_tasks
from brokerage.rules.dispatch.fast_rebrokerage import Move
from brokerage.rules.dispatch.match_limits import Limited
from monitoring.queries.counts import longest_waiting
from monitoring.queries.data_facets import dataset_facets, file_facets
from monitoring.queries.files import file_details
from monitoring.queries.job import find_job, job_outputs, links_of, tries_of
from monitoring.queries.jobs import job_rows, visible_jobs
from monitoring.queries.levels import jobs_at
from monitoring.queries.task import count_jobs, find_task
from monitoring.queries.task_history import task_history
from monitoring.queries.tasks import live_jobs_of, task_rows, visible_tasks
from monitoring.queries.users import user_errors
from monitoring.tables.selection import read
from tests.api.people import person
from tests.ledger.full_tables import JOBS, LARGE_TASK, TASKS, fill
from tests.ledger.plans import Plan, partial_indexes, plan_of_prepared, plans
from workqueues.api.filtering import FileFilter
from workqueues.catalogue import DatasetKey, catalogue
from workqueues.ledger import events, outputs
from workqueues.ledger import files as files_ledger
from workqueues.ledger.claims import WORK, claim_tasks
from workqueues.ledger.commands import _give_up
from workqueues.ledger.finish import note_progress
from workqueues.ledger.holds import kick_children
from workqueues.ledger.lifetimes import limit_lifetimes
from workqueues.ledger.open_inputs import kick_followers, read_again_now
from workqueues.ledger.output_names import claim_outputs
from workqueues.ledger.picking import give_back_picked, take_files, take_partners
from workqueues.ledger.validation import lose_absent_outputs
from workqueues.models import Dataset, File, Task
from workqueues.queries import ranges
from workqueues.queries.lost_outputs import made_outputs, recovering_tasks
from workqueues.queries.read_grants import withheld_inputs
from workqueues.queries.retry_limits import most_tries
from workqueues.queries.tasks import input_writers, live_writers, newest_named, written_by_others
from workqueues.queries.tries import often_tried
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.refine import OutputName, Reader, Writer
from workqueues.states import TASK

MINUTE_AGO = timezone.now() - timedelta(minutes=1)
NO_FILTER = read(QueryDict())
SMALL, LARGE, ALL = VoScope(False, frozenset({"small"})), VoScope(False, frozenset({"demo"})), VoScope(True)


def linked_job() -> Job:
    """A job that others are tied to, as its page found it."""
    job = Job(id=7)
    vars(job)["linked"] = True
    return job


tasks, datasets, files = Task.objects, Dataset.objects, File.objects
kind = {"vo": "demo", "task_type": "prod"}
TYPICAL: tuple[tuple[str, Any, str], ...] = (
    (
        "tasks of a work queue by priority",
        lambda: tasks.filter(
            status="ready", working_group__in=["group1", "group2"], processing_type__in=["proc1", "proc2"], **kind
        ).order_by("-current_priority", "id")[:20],
        "task_by_state_priority",
    ),
    ("tasks with a command", lambda: tasks.exclude(command="").values("id"), "task_commanded"),
    (
        "users with tasks in a state",
        lambda: tasks.filter(status="running", task_type="anal").values("user_name", "vo").distinct(),
        "task_users_by_state",
    ),
    (
        "tasks of a user by priority",
        lambda: tasks.filter(status="done", user_name="user7", **kind).order_by("-current_priority", "id")[:20],
        "task_by_user",
    ),
    (
        "slow tasks",
        lambda: tasks.filter(status="done", task_type="prod", creation_date__lt=timezone.now() - timedelta(days=69)),
        "task_slow",
    ),
    ("tasks of hung processes", lambda: tasks.exclude(locked_by="").filter(locked_time__lt=MINUTE_AGO), "task_locked"),
    ("datasets of a task", lambda: datasets.filter(task_id=7).values("dataset_name", "type"), "dataset_of_task"),
    (
        "datasets to process of a task",
        lambda: datasets.filter(task_id=LARGE_TASK, status="ready", type="input", n_files_to_be_used__gt=F("n_files_used")),
        "dataset_to_process",
    ),
    ("tasks that use a dataset", lambda: datasets.filter(dataset_name="in.7", type="input").values("task_id"), "dataset_by_name"),
    (
        "tasks that contribute to a container",
        lambda: datasets.filter(container_name="box.7", type="input").values("task_id"),
        "dataset_by_container",
    ),
    (
        "datasets whose state is to be checked",
        lambda: datasets.filter(state_check_time__lt=timezone.now() - timedelta(days=13), state_check_expiration__isnull=False),
        "dataset_check_due",
    ),
    ("a dataset", lambda: datasets.filter(id=7), "workqueues_dataset_pkey"),
    ("datasets of hung processes", lambda: datasets.exclude(locked_by="").filter(locked_time__lt=MINUTE_AGO), "dataset_locked"),
    ("the producer of a file", lambda: files.filter(lfn="out.7", scope="", type="output").values("dataset_id"), "file_by_lfn"),
    ("files of a task", lambda: files.filter(task_id=7, type="input").values("id"), "file_of_task"),
    (
        "files of a dataset in a state",
        lambda: files.filter(task_id=LARGE_TASK, dataset_id=LARGE_TASK * 2, type="input", status="picked"),
        "file_by_state",
    ),
    (
        "files of a dataset to process",
        lambda: files.filter(
            task_id=LARGE_TASK, dataset_id=LARGE_TASK * 2, type="input", status="ready", attempt_nr__lt=F("max_attempt")
        ),
        "file_by_state",
    ),
    ("a file", lambda: files.filter(id=7), "workqueues_file_pkey"),
    ("all files of a dataset", lambda: files.filter(dataset_id=7), "file_by_state"),
    ("retries of a job", lambda: JobRetryHistory.objects.filter(old_job_id=7), "brokerage_jobretryhistory_old_job_id"),
    ("what a job is a retry of", lambda: JobRetryHistory.objects.filter(new_job_id=7), "brokerage_jobretryhistory_new_job_id"),
    (
        "the job that made a lost file",
        lambda: Job.objects.filter(id__in=files.filter(lfn="out.7").values("out_job_id")),
        "file_by_lfn",
    ),
)
"""The typical queries of the tables of seed 001, and those that the facts on tables (4.7) add, each with its index."""


def claimed() -> int:
    """A claim on the large task."""
    return tasks.filter(id=LARGE_TASK).update(locked_by="run", locked_time=timezone.now() + timedelta(minutes=1))


def paused_task() -> int:
    """Somebody has just paused a task."""
    return tasks.filter(id=7).update(command="pause", command_time=timezone.now())


def begun() -> dict[str, dict[str, int]]:
    """What began since a round of fifty moves ago."""
    note_round(max(last_change() - 50, 0))
    return recent_starts(last_change())


HOT: tuple[tuple[str, Callable[[], Any], tuple[str, ...]], ...] = (
    *((f"claim for {work}", lambda work=work: claim_tasks("run", 60, TASK.generating, 20, work), ()) for work in WORK),
    ("what is at the sites of submission", lambda: (site_facts(), held_jobs()), ()),
    ("which jobs still wait", lambda: still_waiting(range(1, 30)), ()),
    ("what was submitted and is over", submission.forget_ended, ()),
    ("claim what waits", lambda: claim_tasks("run", 60, ["pending"], 100), ()),
    ("claim of dead runs", lambda: claim_tasks("run", 60, TASK.live, 100, "dead claim"), ()),
    (
        "look at files that would be taken",
        lambda: peek(tasks.get(id=LARGE_TASK), datasets.get(id=LARGE_TASK * 2), 5),
        ("file_by_state",),
    ),
    ("take files", lambda: (claimed(), take_files("run", LARGE_TASK, LARGE_TASK * 2, 100)), ("file_fresh", "file_retry_due")),
    (
        "take what stands beside files",
        lambda: (claimed(), take_partners("run", LARGE_TASK, LARGE_TASK * 2, range(50_000, 50_100))),
        ("file_beside",),
    ),
    ("where jobs failed", lambda: queues_of_failures([InputFile(1, 1, "f", job_id=7)]), ("brokerage_job_pkey",)),
    ("give back files", lambda: (claimed(), give_back_picked("run", LARGE_TASK)), ("file_by_state",)),
    (
        "give up the files that are left",
        lambda: _give_up(datasets.get(id=LARGE_TASK * 2), "test"),
        ("file_by_state",),
    ),
    ("children that wait", lambda: kick_children(40), ("task_by_parent", "workqueues_inputwriter_writer_id")),
    ("children that wait for no end", lambda: kick_followers(40), ("task_by_parent", "workqueues_inputwriter_writer_id")),
    ("who follows a dataset", lambda: read_again_now("demo", ["in.7"]), ("dataset_by_name",)),
    ("the jobs that made lost files", lambda: made_outputs("demo", "out.7", ["out.7", "out.8"]), ("dataset_by_name",)),
    ("who makes lost files again", lambda: recovering_tasks("demo", "out.7"), ("planned_output_once",)),
    ("who writes an input", lambda: live_writers("demo", "user7", "", ["out.7", "out.8"]), ("planned_output_once",)),
    ("who else writes outputs", lambda: written_by_others(Task(id=7, vo="demo"), ["out.7", "out.8"]), ("planned_output_once",)),
    (
        "who may write outputs",
        lambda: claim_outputs(Task(id=7, vo="demo", user_name="user7"), [OutputName("out.7", "x")], shared=False),
        ("dataset_writer_once", "planned_output_once"),
    ),
    ("the inferred parents of a task", lambda: input_writers(Task(id=7)), ("input_writer_once",)),
    ("datasets of the catalogue", lambda: catalogue().look_up(Reader("demo", "user7"), ["in.7"]), ("catalogue_dataset_once",)),
    (
        "datasets of another VO that a grant opens",
        lambda: catalogue().look_up(Reader("vo7", "user7"), ["in.7", "demo:in.7", "demo:in.8"]),
        ("catalogue_dataset_once", "read_grant_by_grantee", "workqueues_cataloguedataset_pkey"),
    ),
    (
        "inputs of another VO that may be read no more",
        lambda: withheld_inputs(
            [Task(id=7, vo="vo7", user_name="x")], [Dataset(id=1, task_id=7, dataset_name="demo:x", vo="vo7", data_vo="demo")]
        ),
        ("read_grant_by_grantee",),
    ),
    ("where datasets are", lambda: catalogue().replicas([DatasetKey("demo", "in.7")]), ("catalogue_dataset_once",)),
    ("outputs that are opened", lambda: outputs.register_datasets(["in.7"], Writer("demo", "", False)), ()),
    ("a task of the same name", lambda: newest_named("demo", "user7", "task.7", prod_source_label="user"), ("task_by_name",)),
    ("logs that could not be brought", lambda: clean_logs({7, 8}, "test"), ("catalogue_file_moving",)),
    ("outputs compared with the catalogue", lambda: lose_absent_outputs(7, "test"), ("dataset_of_task",)),
    ("transient datasets of a task", lambda: limit_lifetimes(7, 1.0), ("dataset_of_task",)),
    ("files that go to their destination", lambda: send_datasets(tasks.get(id=7), "test"), ("dataset_of_task",)),
    ("how far datasets are", lambda: dataset_places([14, 15]), ("workqueues_dataset_pkey",)),
    ("jobs whose outputs have arrived", lambda: finish_delivered([7, 8], "test", [7, 8]), ("brokerage_job_pkey",)),
    ("expire leases", lambda: expire_leases("reap", 1000), ("job_held", "task_keeps_jobs")),
    ("what shares run", running_now, ("job_held",)),
    ("pilots at work", note_pilots_at_work, ("job_held", "brokerage_pilot_pkey")),
    ("idle slots and their work", lambda: BODIES["slots"](new_run("slots")), ("job_lease_place", "job_ready")),
    ("tasks that wait beside idle slots", waiting_tasks, ("decision_of_task",)),
    ("idle slots by queue", lambda: idle_at_queues(7), ()),
    ("jobs that hold slots at a site", lambda: held_slots("S3", [Limited("vo", "demo", "ce1")]), ("job_held",)),
    ("what sites advertise", advertised_sites, ()),
    ("jobs of a task that live", lambda: live_jobs(7), ("job_of_task",)),
    ("what a retry of a task is judged by", lambda: (figures_of(Task(id=7)), most_tries(Task(id=7))), ("job_of_task",)),
    ("what became of jobs", lambda: outcomes([(1, 1), (2, 1)], "Q7"), ("brokerage_job_pkey",)),
    ("jobs per queue and state", job_counts, ("job_open",)),
    ("task queues with waiting jobs", lambda: WaitingWork().of(7, fresh=True), ("job_ready",)),
    ("the last decisions of a task", lambda: latest(7), ("decision_of_task",)),
    ("the parts of a job", lambda: parts_of_job(7), ("file_out_job",)),
    ("leases and states that are over", lambda: BODIES["reap"](new_run("reap")), ("job_open", "task_keeps_jobs")),
    ("jobs of shares at queues", lambda: shares_at_queues([("demo", "MC"), ("demo", "Express")]), ("job_open",)),
    (
        "jobs that leave a queue where too many wait",
        lambda: jobs_leaving(Move(7, "demo", "MC", 100, ""), [7, LARGE_TASK], 600.0),
        ("job_open", "job_ended_lately"),
    ),
    ("how queues serve their jobs", queue_services, ("job_open", "pilot_of_queue")),
    ("jobs that wait at some queues", lambda: waiting_at([7, 8]), ("job_open",)),
    ("jobs at some queues by task", lambda: movable_jobs.waiting_at([7, 8]), ("job_open",)),
    ("waiting jobs of a task", lambda: movable_jobs.waiting_of_task(7), ("job_of_task",)),
    (
        "jobs to broker anew",
        lambda: rebroker([movable_jobs.JobsAtQueue(7, 7, 1, "")], "test", "test"),
        ("job_o",),
    ),
    (
        "jobs that began in the last rounds",
        begun,
        ("brokerage_jobchange_pkey",),
    ),
    ("tasks whose files were tried often", often_tried, ("file_often_tried",)),
    ("tasks that are nearly done", lambda: nearly_done(["user"], 95.0, 900, "Express"), ("dataset_of_task", "job_of_task")),
    ("jobs of tasks that may fail", lambda: ended_jobs(["user"], 5, ["user"]), ("job_ended_lately", "task_change_once")),
    ("jobs of users that wait in vain", lambda: idle_jobs(10800.0), ("job_open", "job_ended_lately")),
    ("tasks to withhold", lambda: withholdable_tasks({"user": (100.0, 500)}), ("task_",)),
    ("tasks that are withheld", withheld_tasks, ("workqueues_task_pkey",)),
    ("queues with what they read", queues_at_data, ("job_open",)),
    ("running tasks to measure", lambda: tasks_to_measure(5, 100), ("dataset_of_task", "job_of_task")),
    ("what users have at once", jobs_of_owners, ("job_open",)),
    ("tasks of users over their cap", lambda: tasks_to_throttle([("demo", "user7"), ("demo", "group:group1")], 500), ()),
    ("tasks that a cap holds", throttled_tasks, ("workqueues_task_pkey",)),
    ("jobs of users over their cap", lambda: (hold_back([7, LARGE_TASK], "t", "w"), let_go([7], "t")), ("job_of_task",)),
    ("a task that is boosted", lambda: raise_tasks([Urgency(7, 900, "Express", "")]), ("job_of_task",)),
    ("jobs of a task that waits or goes on", lambda: (paused_task(), follow_pauses("test")), ("task_commanded", "job_of_task")),
    ("tasks with outputs to merge", tasks_to_merge, ("file_to_merge",)),
    ("jobs whose outputs wait to be merged", lambda: waiting_to_merge([7, 8]), ("file_to_merge",)),
    ("files that wait to be merged", lambda: premerged_files(7, [7, 8]), ("file_to_merge",)),
    ("merge jobs where no job can run", lambda: stranded_merges(3600), ("job_open",)),
    ("the progress of tasks", note_progress, ("dataset_of_task",)),
    ("numbers and seeds of new jobs", lambda: (claimed(), reserve("run", LARGE_TASK, 10)), ("file_of_task",)),
)
"""What agents, pilots and submissions run all the time: the functions of the code, with indexes that they must use."""


def page_of(table: Any, rows: Any, scope: VoScope, below: int | None = None) -> Callable[[], Any]:
    """One page of a list of the pages, `below` an id or the first."""
    place = None if below is None else keyset.Cursor("older", below, "")
    return lambda: keyset.page(table(scope), rows, 100, place, narrow=True)


PAGES: tuple[tuple[str, Callable[[], Any], tuple[str, ...]], ...] = (
    ("all tasks", page_of(visible_tasks, task_rows, ALL), ("workqueues_task_pkey",)),
    ("all tasks from the middle", page_of(visible_tasks, task_rows, ALL, TASKS // 2), ("workqueues_task_pkey",)),
    ("tasks of a small VO", page_of(visible_tasks, task_rows, SMALL), ("task_list_by_vo",)),
    ("tasks of a large VO", page_of(visible_tasks, task_rows, LARGE, TASKS // 2), ()),
    ("all jobs", page_of(visible_jobs, job_rows, ALL), ("brokerage_job_pkey",)),
    ("all jobs from the middle", page_of(visible_jobs, job_rows, ALL, JOBS // 2), ("brokerage_job_pkey",)),
    ("jobs of a small VO", page_of(visible_jobs, job_rows, SMALL), ("job_spec_list_by_vo",)),
    ("jobs of a large VO", page_of(visible_jobs, job_rows, LARGE, JOBS // 2), ()),
    ("jobs of a task", page_of(lambda scope: visible_jobs(scope).filter(task_id=7), job_rows, ALL), ("job_of_task",)),
    ("a task", lambda: find_task(7, SMALL), ("task_list_by_vo",)),
    ("the live jobs of listed tasks", lambda: live_jobs_of([7]), ("job_of_task",)),
    (
        "files of a dataset, newest first",
        lambda: list(FileFilter({"dataset": "14"}, queryset=files.all()).qs.order_by("-id")[:101]),
        ("file_of_task",),
    ),
    ("the jobs of a task by state", lambda: count_jobs(7), ("job_of_task",)),
    ("the held files of a task", lambda: surroundings(7, "demo", 6, "generate"), ("file_held",)),
    (
        "the files of a large task that wait for their next try",
        lambda: surroundings(LARGE_TASK, "demo", 6, "generate"),
        ("file_held", "file_retry_due"),
    ),
    ("what of a task is merged", lambda: site_merges(Task(id=7, vo="demo")), ("job_of_task",)),
    ("a job that its page shows", lambda: find_job(7, ALL), ("brokerage_jobretryhistory_old_job_id",)),
    ("what ties a job to others", lambda: links_of(linked_job()), ("brokerage_jobretryhistory_old_job_id",)),
    ("where the jobs of a task are", lambda: queue_loads(7), ("job_of_task",)),
    ("the inputs of a job", lambda: inputs_of_job(7), ("brokerage_jobinput_job_id",)),
    ("the outputs of a job", lambda: job_outputs(7), ("file_out_job",)),
    ("the tries of a job", lambda: tries_of(links_of(linked_job())), ("brokerage_jobretryhistory_old_job_id",)),
    ("who used a file", lambda: file_details(files.select_related("dataset").earliest("id")), ("job_input_used_once",)),
    ("what is at a queue", lambda: jobs_at(ComputingQueue(id=7, name="Q7")), ("job_ready",)),
    ("idle slots of a day", idle_in_a_day, ()),
    (
        "a task over time",
        lambda: task_history(Task(id=7, creation_date=MINUTE_AGO)),
        ("job_of_task", "job_ended_lately", "file_change_of_task", "decision_of_task"),
    ),
    ("what the system did with a task", lambda: steps_of(7), ("file_change_of_task", "task_change_once")),
    ("the errors of a user", lambda: user_errors("user7", ALL), ("job_ended_lately",)),
    ("what waits longest", lambda: longest_waiting(ALL), ("task_list_by_state",)),
    ("facets of datasets", lambda: dataset_facets(ALL, NO_FILTER), ("workqueues_dataset_pkey",)),
    ("facets of datasets of a small VO", lambda: dataset_facets(SMALL, NO_FILTER), ("dataset_list_by_vo",)),
    ("facets of files", lambda: file_facets(LARGE, NO_FILTER), ("workqueues_file_pkey", "workqueues_task_pkey")),
    ("facets of the files of a task", lambda: file_facets(LARGE, read(QueryDict("task=7"))), ("file_of_task",)),
    (
        "facets of the files of a dataset",
        lambda: file_facets(LARGE, read(QueryDict("dataset=7"))),
        ("file_by_state",),
    ),
)
PREPARING = (
    heartbeats,
    lease,
    merged_jobs,
    settle,
    site_limits,
    offer,
    files_ledger,
    outputs,
    events,
    ranges,
    retry_actions,
    memory_retry,
    reduced_input,
    submission,
)
"""The modules that prepare statements."""
REST: tuple[tuple[str, str | tuple[str, ...]], ...] = (
    ("tasks/", "task_list_by_vo"),
    ("tasks/?status=done", ("task_by_state_priority", "task_list_by_vo")),
    ("tasks/7000/", "workqueues_task_pkey"),
    ("tasks/7000/history/", "task_change_once"),
    ("tasks/7000/jobs/", "job_of_task"),
    ("tasks/7000/files/", "file_of_task"),
    ("datasets/", "dataset_list_by_vo"),
    ("read-grants/", "read_grant_by_grantee"),
    ("jobs/", "job_spec_list_by_vo"),
    ("jobs/5000/", "brokerage_job_pkey"),
)
"""What a user of a small VO reads by REST. Of two indexes either has few rows of it, and the sample of ANALYZE decides."""


@override_settings(CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}})
class Indexed(TestCase):
    rows: ClassVar[dict[str, float]]
    partial: ClassVar[frozenset[str]]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.rows, cls.partial = fill(checked=True), partial_indexes()

    def hold(self, what: str, found: list[Plan], wanted: tuple[str | tuple[str, ...], ...]) -> None:
        """The plans read and sort few rows whatever the tables hold, and use indexes whose names begin so, or one of several."""
        self.assertTrue(found, what)
        faults = [f"{fault}: {' '.join(p.sql.split())[:300]}" for p in found for fault in p.faults(self.rows, self.partial)]
        self.assertEqual(faults, [], what)
        used = {index for p in found for index in p.indexes()}
        for name in wanted:
            self.assertTrue([index for index in used if index.startswith(name)], f"{what}: {name} is not among {used}")

    def test_each_typical_query_of_the_document_is_one_indexed_query(self) -> None:
        for what, query, index in TYPICAL:
            with self.subTest(what), plans() as found:
                list(query())
                self.assertEqual(len(found), 1, what)
                self.hold(what, found, (index,))

    def test_updates_that_the_document_lists_find_their_rows_by_index(self) -> None:
        for what, rows, index in (
            ("a dataset", datasets.filter(id=7), "workqueues_dataset_pkey"),
            ("the datasets of a task", datasets.filter(task_id=7), "dataset_"),
            ("a file", files.filter(id=7), "workqueues_file_pkey"),
            ("the files of a dataset", files.filter(dataset_id=7), "file_by_state"),
        ):
            with self.subTest(what), plans() as found:
                rows.update(type=F("type"))
                self.hold(what, found, (index,))

    def test_each_prepared_statement_has_an_indexed_plan_for_all_values(self) -> None:
        statements = prepared()
        self.assertGreaterEqual(
            {s.name for s in statements}, {"lease", "beat_together", "beat_alone", "settle_files", "move_jobs_any"}
        )
        for statement in statements:
            with self.subTest(statement.name):
                self.hold(statement.name, [plan_of_prepared(statement)], ())

    def test_what_agents_and_pilots_run_all_the_time_is_indexed(self) -> None:
        for what, act, wanted in HOT:
            with self.subTest(what), plans() as found:
                act()
                self.hold(what, found, wanted)

    def test_pages_read_by_index(self) -> None:
        for what, act, wanted in PAGES:
            with self.subTest(what), plans() as found:
                act()
                self.hold(what, found, wanted)

    def test_rest_lists_of_a_small_vo_do_not_walk_through_the_rows_of_the_others(self) -> None:
        forget_verified()
        sam = person("sam", ("small", "submitter"))
        for path, index in REST:
            with self.subTest(path), plans() as found:
                answer = sam.get(path)
                self.assertEqual(answer.status_code, 200, answer.content)
                self.hold(path, found, (index,))

    def test_the_rule_bites(self) -> None:
        for query, fault in (
            (tasks.filter(cloud="nowhere"), f"reads {TASKS} rows of workqueues_task"),
            (tasks.filter(status="done").order_by("task_name"), "sorts "),
            (tasks.filter(cloud="nowhere").order_by("id").values("id"), f"reads {TASKS} rows of workqueues_task"),
        ):
            with plans() as found:
                list(query)
            self.assertIn(fault, " ".join(found[0].faults(self.rows, self.partial)))


def prepared() -> list[Prepared]:
    """Every prepared statement of the code."""
    named = [value for module in PREPARING for value in vars(module).values()]
    constants = [one for value in named for one in (value.values() if isinstance(value, dict) else [value])]
    return [*(one for one in constants if isinstance(one, Prepared)), *(moves._move(moves.fence(), only) for only in moves.ONLY)]
