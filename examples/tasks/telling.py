"""What the worked task prints: each step's rows, as the database has them. Nothing is written here.

Lines are the same in every run on an empty database: no times, no names of machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from brokerage.models import ComputingQueue, Decision, Job, JobChange, JobInput, JobResult, JobRetryHistory, JobSpec
from brokerage.queries.command_lines import command_line
from brokerage.queries.decisions import DecisionFacts, decision_facts, explanation_of, with_snapshot
from brokerage.rules.explain.explanation import Explanation
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.job_limits import limits_at, limits_of_task
from workqueues.models import (
    Dataset,
    EventRange,
    File,
    GlobalShare,
    ShareStanding,
    Task,
    ThrottleVerdict,
    WorkQueue,
    WorkQueueStanding,
)
from workqueues.models.share import Standing
from workqueues.queries.shares import PATTERNS, trees
from workqueues.queries.work_queues import WorkQueues
from workqueues.rules.jobs.job_size import GB, Budget
from workqueues.rules.jobs.split_rule import parse

SAID = {True: "holds", False: "does not hold", None: "not known"}


def heading(title: str) -> None:
    """Begin a section."""
    print(f"\n== {title}")


def table(head: str, rows: Iterable[Sequence[object]]) -> None:
    """Columns under the words of `head`; numbers to the right, texts to the left."""
    lines = [head.split("|"), *([_text(cell) for cell in row] for row in rows)]
    right = [all(_is_number(line[n]) for line in lines[1:]) for n in range(len(lines[0]))]
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    for line in lines:
        cells = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True))
        print("  ".join(cells).rstrip())


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.2f}".rstrip("0").rstrip(".")
    return "" if cell is None else str(cell)


def _is_number(text: str) -> bool:
    return not text or text.replace(".", "", 1).replace("-", "", 1).isdigit()


def tell_grid() -> None:
    """The queues, and what waits and runs there before the task comes."""
    heading("0. Before the task comes")
    jobs = Counter(Job.objects.values_list("computing_queue__name", "status"))
    table(
        "queue|corepower|maxwdir|maxtime|maxrss|waiting|running",
        (
            (q.name, q.corepower, q.maxwdir, q.maxtime, q.maxrss, jobs[q.name, "activated"], jobs[q.name, "running"])
            for q in ComputingQueue.objects.order_by("name")
        ),
    )
    of_task = Counter(Job.objects.values_list("task_id", "status"))
    table(
        "task|work queue|share|waiting|running",
        (
            (t.task_name, t.work_queue, t.gshare, of_task[t.id, "activated"], of_task[t.id, "running"])
            for t in Task.objects.select_related("work_queue").order_by("id")
        ),
    )


def tell_refined(task_id: int) -> None:
    """The task and its datasets as refine and feed left them."""
    task = Task.objects.get(id=task_id)
    heading("1. The task, refined and fed")
    print(f"split rule      {task.split_rule}")
    print(f"resource type   {task.resource_type}")
    table(
        "dataset|type|attributes|files|events|stream",
        (
            (d.dataset_name, d.type, d.attributes, d.n_files, d.n_events, d.stream_name)
            for d in Dataset.objects.filter(task_id=task_id).order_by("id")
        ),
    )


def columns_of(task_id: int) -> dict[str, Any]:
    """The task as the mappings read it."""
    return dict(Task.objects.filter(id=task_id).values().get())


def tell_work_queue(task_id: int) -> None:
    """Every work queue that was asked, in order, and what its criteria said."""
    queues = WorkQueues.load()
    task = columns_of(task_id)
    mapped = queues.mapped(task)
    heading("2. Work queue")
    table(
        "order|queue|criteria|variables|said",
        (
            (row.queue_order, row.queue_name, row.criteria, row.variables, trial.out_of_scope or SAID[trial.verdict])
            for trial in mapped.trials
            for row in (queues.rows[trial.queue],)
        ),
    )
    named = {"processingType": "processing_type", "workingGroup": "working_group", "coreCount": "core_count"}
    print(f"of the task     {', '.join(f'{name} = {task[column]}' for name, column in named.items())}")
    chosen = WorkQueue.objects.select_related("partition").get(id=task["work_queue_id"])
    print(f"stored          {chosen.queue_name}, in the partition {chosen.partition}")
    print(f"not asked       {', '.join(_not_asked(queues, {trial.queue for trial in mapped.trials}))}")


def _not_asked(queues: WorkQueues, asked: set[str]) -> Iterator[str]:
    for name, row in sorted(queues.rows.items(), key=lambda item: item[1].queue_order):
        if name not in asked:
            yield f"{row.queue_name} ({'a partition' if row.is_partition else 'behind'})"


def tell_share(task_id: int) -> None:
    """Every leaf up to the one that takes the task, with what it compares."""
    task = columns_of(task_id)
    tree = trees()[task["vo"]]
    heading("3. Share")
    rows = []
    for leaf in tree.leaves:
        rows.append((leaf.name, ", ".join(f"{column} = {pattern}" for column, pattern in leaf.patterns)))
        if leaf.name == task["gshare"]:
            break
    table("leaf|regular expressions", rows)
    print(f"of the task     {', '.join(f'{column} = {task[column]}' for column in PATTERNS if task[column])}")
    print(f"stored          {task['gshare']}")


def tell_standings() -> None:
    """Where the shares stand, as the agent share counted."""
    heading("4. Where the shares stand")
    parents = dict(GlobalShare.objects.values_list("name", "parent"))
    rows = ShareStanding.objects.select_related("share").order_by("share__position")
    _standings((("  " if parents[s.share_id] else "") + s.share_id, s) for s in rows)


def tell_queue_standings() -> None:
    """Where the work queues stand, in their order."""
    heading("15. The same, if the work queues drove the VO")
    rows = WorkQueueStanding.objects.select_related("work_queue").order_by("work_queue__queue_order")
    _standings((("  " if s.work_queue.partition_id else "") + s.work_queue.queue_name, s) for s in rows)


def _standings(rows: Iterable[tuple[str, Standing]]) -> None:
    table(
        "name|percent|target|used|queued|entitled|above|place",
        (
            (name, s.percent, s.target, s.hs06_running, s.hs06_queued, s.entitled, "yes" if s.above else "no", s.place)
            for name, s in rows
        ),
    )


def tell_verdict(title: str) -> None:
    """The newest verdict on the share of the task."""
    verdict = ThrottleVerdict.objects.filter(unit="MC Pile-up").latest("id")
    heading(title)
    print(f"unit            {verdict.vo}, {verdict.prod_source_label}, {verdict.unit}, {verdict.resource_type}")
    print(f"jobs            {verdict.activated} activated, {verdict.running} running")
    for name, found in sorted(verdict.limits.items()):
        level = found["level"] or "the whole share"
        print(f"{name:15} {found['value']} by {found['key']}, counted for {level}: {found['queued']} queued")
    print(f"verdict         {verdict.decision}: {verdict.reason}")
    print(f"max_jobs, lock  {verdict.max_jobs}, {'yes' if verdict.lock else 'no'}")


def _decision(task_id: int) -> DecisionFacts:
    return decision_facts(with_snapshot(Decision.objects.filter(task_id=task_id)).latest("id"))


def tell_decision(task_id: int) -> None:
    """The brokerage: who was skipped, who was taken by what weight."""
    heading("6. Brokerage")
    story = _skipped(task_id)
    names = list(story.chosen[0].factors)
    table("taken|weight|" + "|".join(names), ((c.name, c.weight, *(c.factors[n] for n in names)) for c in story.chosen))


def _skipped(task_id: int) -> Explanation:
    """Print the verdict and who was skipped; the story of the decision."""
    story = explanation_of(_decision(task_id).row)
    if story is None:
        raise SystemExit("the decision can no longer be read")
    print(f"verdict         {story.verdict}")
    table("skipped|criterion|reason", ((s.name, s.criterion, s.reason) for s in story.skipped))
    return story


def _tell_limits(task_id: int) -> None:
    """What a job may take at each queue that was taken: the sums that the splitter kept."""
    stored = _decision(task_id)
    queues = stored.columns()
    if stored.ask is None or stored.policy is None or stored.record is None or not isinstance(queues, Queues):
        raise SystemExit("the decision can no longer be read")
    ask = stored.policy.prepare(stored.ask, stored.config)
    rules = parse(Task.objects.get(id=task_id).split_rule)
    sized = bool(rules.files_per_job or rules.events_per_job or rules.target_events)
    rows: list[tuple[str, str, str]] = []
    for choice in stored.record.decision.chosen:
        limits = limits_at(ask, queues, choice.row, limits_of_task(ask, 200), sized=sized)
        rows += [(choice.name, budget.what, _in_words(budget)) for budget in limits.budgets]
    table("queue|limit|a job keeps", rows)


def _in_words(budget: Budget) -> str:
    """A budget as a sum: bytes in GB, times in seconds."""
    seconds = budget.what == "walltime"
    scale, unit = (1.0, "s") if seconds else (GB, "GB")
    parts = [f"{budget.per_byte:g} x GB of input"] if budget.per_byte else []
    parts += [f"{budget.per_event / scale:.4g} {unit} x events"] if budget.per_event else []
    than = "less than" if budget.below else "at most"
    return f"{' + '.join(parts)} is {than} {budget.most / scale:g} {unit}{'' if budget.hard else ', if it can'}"


def tell_cut(task_id: int) -> None:
    """The limits of the queues and the jobs that were cut."""
    heading("7. Splitting")
    _tell_limits(task_id)
    _tell_jobs(task_id)


def _tell_jobs(task_id: int, after: int = 0) -> None:
    specs = JobSpec.objects.filter(job__task_id=task_id, job_id__gt=after).select_related("job__computing_queue")
    table(
        "job|try|queue|events|signal|minbias|GB|disk_mb|walltime_s",
        (
            (
                spec.job_id,
                spec.job.attempt_nr,
                spec.job.placed_at.name,
                spec.n_events,
                _signal(spec.job_id),
                _files(spec.job_id, "demo.minbias"),
                spec.input_bytes / GB,
                spec.disk_mb,
                spec.walltime_s,
            )
            for spec in specs.order_by("job_id")
        ),
    )


def _number(lfn: str) -> str:
    """The number of a file in its name."""
    return str(int(lfn.rpartition("._")[2].removesuffix(".pool")))


def _signal(job_id: int) -> str:
    """Ranges of events where there are some, else files."""
    ranges = EventRange.objects.filter(job_id=job_id).select_related("file").order_by("file_id", "def_min_event_id")
    listed = [f"{_number(r.file.lfn)}: {r.def_min_event_id}-{r.def_max_event_id}" for r in ranges]
    return ", ".join(listed) or _files(job_id, "demo.signal")


def _files(job_id: int, dataset: str) -> str:
    ids = JobInput.objects.filter(job_id=job_id).order_by("id").values_list("file_id", flat=True)
    files = File.objects.filter(dataset__dataset_name=dataset).in_bulk(list(ids))
    return ",".join(_number(files[id_].lfn) for id_ in ids if id_ in files)


def tell_job(task_id: int, nth: int) -> None:
    """One job in full: the nth of the task."""
    job_id = Job.objects.filter(task_id=task_id).order_by("id").values_list("id", flat=True)[nth - 1]
    heading(f"{7 + nth}. Job {job_id} in full")
    _tell_in_full(job_id)


def _tell_in_full(job_id: int) -> None:
    print(command_line(JobSpec.objects.get(job_id=job_id)).replace(" --", "\n--"))
    inputs = list(JobInput.objects.filter(job_id=job_id).order_by("id"))
    files = File.objects.in_bulk([i.file_id for i in inputs])
    ranges = EventRange.objects.in_bulk([i.event_range_id for i in inputs if i.event_range_id])
    rows = []
    for use in inputs:
        events = ranges.get(use.event_range_id or 0)
        told_events = f"{events.def_min_event_id}-{events.def_max_event_id}" if events else ""
        rows.append((files[use.file_id].lfn, told_events, "yes" if use.tracked else "no", use.attempt_nr))
    table("input|events|tracked|tries before", rows)


def tell_failed(job_id: int) -> None:
    """What the report of a failed job left."""
    result = JobResult.objects.get(job_id=job_id)
    heading(f"12. Job {job_id} fails")
    print(f"result          {result.error_code}: {result.error_message}")
    last = JobChange.objects.filter(job_id=job_id).latest("id")
    print(f"job             {last.old} -> {last.new}")
    table(
        "range of file|events|status|tries|failed",
        (
            (r.file.lfn, f"{r.def_min_event_id}-{r.def_max_event_id}", r.status, r.attempt_nr, r.failed_attempt)
            for r in EventRange.objects.filter(job_id=job_id).select_related("file").order_by("id")
        ),
    )
    ids = JobInput.objects.filter(job_id=job_id).values_list("file_id", flat=True)
    table(
        "file|type|status|tries|failed",
        (
            (f.lfn, f.type, f.status, f.attempt_nr, f.failed_attempt)
            for f in File.objects.filter(id__in=list(ids)).order_by("dataset_id", "id")
        ),
    )


def tell_again(task_id: int) -> None:
    """The job that was made of what a failed one gave back."""
    link = JobRetryHistory.objects.filter(task_id=task_id).latest("id")
    heading(f"13. Job {link.new_job_id} after job {link.old_job_id}")
    _tell_jobs(task_id, after=link.new_job_id - 1)
    _tell_in_full(link.new_job_id)


def tell_sized(task_id: int) -> None:
    """A task whose jobs are as large as their queue allows."""
    heading("14. The same with nGBPerJob instead of nEventsPerJob")
    task = Task.objects.get(id=task_id)
    print(f"split rule      {task.split_rule}")
    _skipped(task_id)
    _tell_limits(task_id)
    _tell_jobs(task_id)
    if task.error_dialog:
        print(f"left            {task.error_dialog}")
