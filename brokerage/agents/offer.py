"""Agent offer. Takes tasks whose work goes to child brokers, with files to use. Leaves elements that children pull; those whose
leases are over are available again, and those that wait are located anew. Next: children.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look
from broker_site.foundation.agency.run import Run, agent
from brokerage.queries.element_places import GridPlaces, TaskWishes, task_wishes
from workqueues.agents.each import each
from workqueues.catalogue import CatalogueUnavailable, catalogue
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.elements.asides import follow_tasks
from workqueues.ledger.elements.cutting import NewElement, make_elements
from workqueues.ledger.elements.groups import GroupKey, remove_empty_groups
from workqueues.ledger.elements.inboxes import refresh_inboxes
from workqueues.ledger.elements.locations import due_elements, relocate
from workqueues.ledger.elements.returning import end_overdue_cancellations, lapse, take_back_from_drained
from workqueues.ledger.holds import note_reason
from workqueues.ledger.installation import renew_if_restored
from workqueues.ledger.picking import give_back_picked, take_files
from workqueues.models import Dataset, Element, File, Task
from workqueues.rules.elements.cuts import Cut, cut_files, cut_records
from workqueues.rules.elements.giving_back import resting, sites_in_rest
from workqueues.rules.jobs.split_rule import SplitRules, parse
from workqueues.rules.refine import dataset_key
from workqueues.rules.task.scouts import expected_jobs
from workqueues.states import MASTER_TYPES, TASK

BATCH = 20
ELEMENTS_AT_ONCE = 20
"""So many elements are cut of one task before others have their turn."""
BATCH_ELEMENTS = 1000
NO_SITE = "no site has all that it reads and may have it by the lists of its task"
NO_SITE_BY_LISTS = "no site may have it by the lists of its task"
NO_PLACE = "its files are at no storage of the grid"


@agent("offer")
def offer(run: Run) -> int:
    """Take back, locate and cut elements: how many. Which broker this is comes first: children ask for it."""
    if not Element.objects.exists() and not Task.objects.filter(ended_at=None).exclude(work_to="own").exists():
        return 0
    renew_if_restored()
    config = gdpconfig.component("elements")
    done = lapse(BATCH_ELEMENTS, run.who) + end_overdue_cancellations(config["CANCEL_GRACE"], BATCH_ELEMENTS, run.who)
    done += take_back_from_drained(run.who) + follow_tasks(BATCH_ELEMENTS)
    grid = GridPlaces.load()
    done += locate(grid, config["LOCATIONS"])
    tasks = claim_tasks(run.id, run.claim_s, TASK.offered, BATCH, work="elements to cut", order="share")
    done += each(run, tasks, lambda run, task: cut_task(run, task, grid))
    refresh_inboxes()
    remove_empty_groups(BATCH_ELEMENTS, config["EMPTY_GROUP"])
    return done


def cut_task(run: Run, task: Task, grid: GridPlaces) -> int:
    """Cut elements of the inputs of one claimed task, as many as may wait: how many."""
    give_back_picked(run.id, task.id)  # the claim may be that of a run that died
    rules, config = parse(task.split_rule), gdpconfig.component("elements", vo=task.vo)
    if task.status == "ready" and task.work_to == "first" and rules.scouting:
        release(task.id, run.id)
        return 0
    room = config["ELEMENTS_AHEAD"] - _waiting(task, config["ELEMENTS_AHEAD"])
    made = 0
    try:
        wishes = task_wishes(task, grid)
        masters = Dataset.objects.filter(task_id=task.id, type__in=MASTER_TYPES, master=None, excluded=False, status="ready")
        for dataset in masters.order_by("id"):
            wanted = min(room - made, ELEMENTS_AT_ONCE)
            if wanted > 0:
                new = list(_elements(run, task, dataset, rules, grid, wishes, wanted * config["ELEMENT_FILES"]))
                make_elements(run.id, task.id, dataset.id, new, run.who)
                made += len(new)
    except CatalogueUnavailable as error:
        give_back_picked(run.id, task.id)
        note_reason(task.id, f"the catalogue does not answer: {error}")
    release(task.id, run.id)
    if made >= ELEMENTS_AT_ONCE:
        look("offer")
    return made


def _waiting(task: Task, most: int) -> int:
    """Elements of the task that wait, as far as it matters."""
    return len(Element.objects.filter(task_id=task.id, status="Available").values_list("id")[:most])


def _elements(
    run: Run, task: Task, dataset: Dataset, rules: SplitRules, grid: GridPlaces, wishes: TaskWishes, n_files: int
) -> Iterator[NewElement]:
    """Pick files of a dataset and cut them."""
    most = int(gdpconfig.value("elements", "ELEMENT_FILES", vo=task.vo))
    per_job = int(gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB", vo=task.vo))
    is_records = dataset.type == "pseudo_input"
    files = take_files(run.id, task.id, dataset.id, n_files)
    if is_records:
        cuts = list(cut_records(files, most))
    else:
        key = dataset_key(task.vo, dataset.dataset_name, dataset.data_vo)
        places = catalogue().places_of_files(key, [file.lfn for file in files])
        cuts = list(cut_files(files, {lfn: {storage for storage, _ in copies} for lfn, copies in places.items()}, most))
    for cut in cuts:
        sites = wishes.sites(grid, dataset.dataset_name, cut.storages, reads_input=not is_records)
        n_bytes = sum(file.fsize or 0 for file in cut.files)
        jobs = expected_jobs(rules, len(cut.files), cut.n_events, n_bytes, per_job, numbered=is_records)
        group = GroupKey(task.vo, team_of(task), tuple(sorted(sites)))
        yield NewElement(cut, group, max(jobs, 1), why_waiting(cut, sites, is_records=is_records))


def team_of(task: Task) -> str:
    return str(task.params.task_params.get("team") or "")[:64]


def why_waiting(cut: Cut, sites: frozenset[str], *, is_records: bool) -> str:
    """Why no site may have an element; empty where one may."""
    if sites:
        return ""
    if is_records:
        return NO_SITE_BY_LISTS
    return NO_SITE if cut.storages else NO_PLACE


def locate(grid: GridPlaces, period_s: float) -> int:
    """Look up anew where the files of elements are that wait and were not looked up for so long (row W5), or were given back: how
    many.
    """
    due = due_elements(BATCH_ELEMENTS, period_s)
    by_task: dict[int, list[Element]] = {}
    for element in due:
        by_task.setdefault(element.task_id, []).append(element)
    located = 0
    for task in Task.objects.filter(id__in=by_task).select_related("params"):
        wishes = task_wishes(task, grid)
        for element in by_task[task.id]:
            places = common_places(task, element)
            is_records = element.dataset.type == "pseudo_input"
            sites = wishes.sites(grid, element.dataset.dataset_name, places, reads_input=not is_records)
            why, rests = why_waiting(Cut((), places), sites, is_records=is_records), vars(element)["rests"]
            if rests and element.returned_by is not None:
                sites = sites_in_rest(sites, element.returned_by.sites, element.n_returned)
                why = why or ("" if sites else resting(element.returned_by.name, element.rests_until, element.n_returned))
            group = GroupKey(task.vo, team_of(task), tuple(sorted(sites)))
            located += relocate(element, places, group, why, rests=rests)
    return located


def common_places(task: Task, element: Element) -> tuple[str, ...]:
    """The storage endpoints that have all files of an element; none of records."""
    if element.dataset.type == "pseudo_input":
        return ()
    lfns = list(File.objects.filter(element_id=element.id, status="picked").values_list("lfn", flat=True))
    key = dataset_key(task.vo, element.dataset.dataset_name, element.dataset.data_vo)
    places = catalogue().places_of_files(key, lfns)
    of_each = [{storage for storage, _ in places.get(lfn, ())} for lfn in lfns]
    return tuple(sorted(set.intersection(*of_each))) if of_each else ()
