"""Agent assess. Takes tasks that scout, and running ones of which enough jobs have finished. Leaves them with measured needs;
those that scout running, exhausted or to be broken once their scouts ended. Next: generate, for more scouts or all other jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Avg

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from broker_site.foundation.gdpconfig.values import pick
from brokerage.ledger.scouts import Assessment, make_more, note_needs, scale_out
from brokerage.ledger.scouts import assess as write
from brokerage.queries.measurable_tasks import tasks_to_measure
from brokerage.queries.scouts import ScoutStanding, figures_of, standings
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.facts.needs import BASE_WALLTIME_S, CPU_EFFICIENCY, size_mb
from workqueues.models import Dataset, File, Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.measured_needs import JobFigures, TaskNeeds, credible, measure
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.task.scouts import LABELLED, ScoutedTask, expected_jobs, verdict
from workqueues.states import MASTER_TYPES


@agent("assess")
def assess(run: Run) -> int:
    """Measure what has finished, end what has ended, ask for scouts that are missing: how many tasks moved on."""
    found = standings()
    make_more([one.task_id for one in found.values() if one.step.more and one.rests])
    due = [one for one in found.values() if one.step.end or (one.step.measured and not one.assessed)]
    moved = write(list(_assessments(due)), run.who)
    return moved + scale_out(run.who) + measure_running()


def measure_running() -> int:
    """Measure what running tasks need once enough of their jobs have finished, those too that had no scouts: how many."""
    config = gdpconfig.component("dbproxy")
    due = tasks_to_measure(config["MEASURE_FROM"], config["MEASURE_AGAIN"])
    ids = [one.task_id for one in due]
    figures = figures_of(ids, (JobKind.NORMAL, JobKind.SCOUT))
    tasks, masters = Task.objects.in_bulk(ids), _masters(ids)
    return note_needs(
        [
            Assessment(
                one.task_id, _measured(task, masters.get(task.id, ()), credible(figures.get(task.id, ()))), n_jobs=one.finished
            )
            for one in due
            if (task := tasks.get(one.task_id))
        ]
    )


def _measured(task: Task, masters: Sequence[Dataset], figures: Sequence[JobFigures]) -> Mapping[str, Any]:
    """What these jobs of a task show. Its memory is never lowered where it was raised, as jobs ran out of it."""
    config = gdpconfig.component("dbproxy", vo=task.vo)
    columns = measure(figures, needs_of(task, reads_files=reads_files(masters)), parse(task.split_rule), config)
    asked, now = _asked(task, "ramCount"), task.ram_count or 0
    if "ram_count" in columns and (task.n_measured or (asked is not None and now > asked)):
        columns["ram_count"] = max(columns["ram_count"], now)
    return columns


def _assessments(due: Sequence[ScoutStanding]) -> Iterator[Assessment]:
    ids = [one.task_id for one in due]
    tasks, figures = Task.objects.in_bulk(ids), figures_of(ids)
    masters = _masters(ids)
    for one in due:
        if task := tasks.get(one.task_id):
            config = gdpconfig.component("dbproxy", vo=task.vo)
            yield _assessment(task, one, credible(figures.get(task.id, ())), masters.get(task.id, ()), config)


def _assessment(
    task: Task, standing: ScoutStanding, figures: Sequence[JobFigures], masters: Sequence[Dataset], config: Mapping[str, Any]
) -> Assessment:
    columns = measure(figures, needs_of(task, reads_files=reads_files(masters)), standing.rules, config)
    if not standing.step.end:
        return Assessment(task.id, columns, n_jobs=standing.counts.finished)
    sizes = {} if standing.rules.sized else mean_sizes([dataset.id for dataset in masters])
    scouted = ScoutedTask(
        activity=activity_of(task.prod_source_label),
        rules=standing.rules,
        counts=standing.counts,
        figures=figures,
        expected=sum(jobs_to_come(task, dataset, sizes.get(dataset.id, 0.0)) for dataset in masters),
        max_attempt=standing.max_attempt,
        asked_cpu_time=_hs06(_asked(task, "cpuTime"), task.cpu_time_unit),
        cpu_time=_hs06(columns.get("cpu_time"), task.cpu_time_unit),
        asked_ram=_asked(task, "ramCount"),
        ram=columns.get("ram_count"),
        io_intensity=columns.get("io_intensity"),
    )
    labelled = {name: pick(config, f"{name}_<label>", label=task.prod_source_label) for name in LABELLED}
    of_label = {name: value for name, value in labelled.items() if value is not None}
    return Assessment(task.id, columns, verdict(scouted, {**config, **of_label}), standing.counts.finished)


def _masters(task_ids: Sequence[int]) -> Mapping[int, Sequence[Dataset]]:
    """The master datasets of these tasks."""
    masters: dict[int, list[Dataset]] = {}
    for dataset in Dataset.objects.filter(task_id__in=task_ids, type__in=MASTER_TYPES, master=None, excluded=False):
        masters.setdefault(dataset.task_id, []).append(dataset)
    return masters


def reads_files(masters: Sequence[Dataset]) -> bool:
    """Whether jobs of these datasets read files."""
    return any(dataset.type == "input" for dataset in masters)


def needs_of(task: Task, *, reads_files: bool) -> TaskNeeds:
    """What the task says now that its jobs need."""
    return TaskNeeds(
        ram_unit=task.ram_unit or "MB",
        base_ram_mb=task.base_ram_count or 0.0,
        cpu_time_unit=task.cpu_time_unit,
        cpu_efficiency=CPU_EFFICIENCY if task.cpu_efficiency is None else task.cpu_efficiency,
        base_walltime_s=BASE_WALLTIME_S if task.base_walltime is None else task.base_walltime,
        walltime=task.walltime,
        out_disk_unit=task.out_disk_unit,
        work_disk_mb=size_mb(task.work_disk_count, task.work_disk_unit),
        reads_files=reads_files,
    )


def _asked(task: Task, name: str) -> float | None:
    """A number as the task was submitted with it; what was measured meanwhile is in its columns."""
    value = task.params.task_params.get(name)
    return float(value) if isinstance(value, int | float) else None


def _hs06(cpu_time: float | None, unit: str) -> float | None:
    """CPU time of an event in HS06 s, whatever the unit of its task."""
    return cpu_time / 1000.0 if cpu_time is not None and unit.startswith("m") else cpu_time


def mean_sizes(dataset_ids: Sequence[int]) -> Mapping[int, float]:
    """Bytes of a file of these datasets, on average."""
    files = File.objects.filter(dataset_id__in=dataset_ids).order_by("dataset_id").values_list("dataset_id")
    return {dataset_id: float(mean or 0.0) for dataset_id, mean in files.annotate(Avg("fsize"))}


def jobs_to_come(task: Task, dataset: Dataset, mean_size: float) -> int:
    """About how many jobs are still made of a master dataset, by the files and events that are not used."""
    left = max(dataset.n_files_to_be_used - dataset.n_files_used, 0)
    events = (dataset.n_events or 0) * left // max(dataset.n_files, 1)
    n_bytes = round(mean_size * left)
    max_files = int(gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB", vo=task.vo))
    return expected_jobs(parse(task.split_rule), left, events, n_bytes, max_files, numbered=dataset.type == "pseudo_input")
