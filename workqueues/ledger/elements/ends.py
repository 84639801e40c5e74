"""Files of elements that ended at a child broker: settled once each, with what was made of them (decisions J3, J9)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from django.db import connection
from django.db.models import F

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.copying import copy_lines, escaped, take_ids
from broker_site.foundation.sql.prepared import run_together
from workqueues.ledger.elements.files import keep_files, times_come_back
from workqueues.ledger.elements.returning import NO_TERMS, ReturnTerms
from workqueues.ledger.files import JobOutcome, MadeFile, TryLimit, settling
from workqueues.ledger.outputs import CatalogueEntry, registered_before, registering
from workqueues.models import Dataset, Element, File, OutputTemplate
from workqueues.rules.elements.giving_back import given_up, is_given_up, rest_s
from workqueues.rules.elements.messages import Ends, OutputTold
from workqueues.rules.jobs.event_ranges import Outcome
from workqueues.rules.jobs.job_parameters import compiled_name
from workqueues.states import OUTPUT_TYPES

OUTCOMES: Mapping[str, Outcome] = {"finished": "finished", "failed": "failed", "unused": "untried"}
USES: Mapping[str, str] = {"finished": "used", "failed": "failed", "unused": "untried"}
"""What became of an input, as a child says -> how its use ends here."""


class Refused(Exception):
    """What a child says of files cannot be; nothing of it was settled. The message is a sentence for its operator."""


@dataclass(frozen=True, slots=True)
class _Fresh:
    """Ends whose inputs run still: their files by name, and the outputs that come with them."""

    inputs: Mapping[int, str]
    why: Mapping[int, str]
    outputs: Sequence[OutputTold]


class OutputPlaces(NamedTuple):
    """Where a child may leave outputs: storage endpoints with the sites that have them, or whose queues use them, and the sites
    of the child.
    """

    storages: Mapping[str, Collection[str]] = MappingProxyType({})
    sites: Collection[str] = ()


NOWHERE = OutputPlaces()


def settle_ends(
    element: Element, ends: Sequence[Ends], places: OutputPlaces, keep_s: float = 0.0, returns: ReturnTerms = NO_TERMS
) -> int:
    """Settle what ended of a locked element, in the caller's transaction: how many files. What was settled before is passed over.
    `keep_s`: so long at least what came back unused stays in the element; longer the more often it did, until it fails.

    The datasets of its inputs are locked. Raises Refused.
    """
    if not ends:
        return 0
    live = _live_files(element, [told.lfn for end in ends for told in end.inputs])
    fresh = list(_fresh(ends, live))
    if not fresh:
        return 0
    outputs = [output for each in fresh for output in each.outputs]
    datasets = _datasets(element, outputs, places)
    _check_made(element, fresh, datasets)
    new, made = _make_outputs(element, outputs, datasets)
    by_end: dict[str, list[int]] = defaultdict(list)
    for each in fresh:
        for file_id, end in each.inputs.items():
            by_end[end].append(file_id)
    back = times_come_back(by_end["unused"], element.id)
    over = [file_id for file_id in by_end["unused"] if is_given_up(back[file_id], returns.most)]
    by_end["unused"] = [file_id for file_id in by_end["unused"] if file_id not in set(over)]
    outcomes = [
        JobOutcome(0, OUTCOMES[end], ids, element_id=element.id, limit=_limit(end, fresh)) for end, ids in by_end.items() if ids
    ]
    if over:
        outcomes.append(JobOutcome(0, "failed", over, element_id=element.id, limit=_given_up(over, back, fresh)))
        by_end["failed"] = [*by_end["failed"], *over]
    if new:
        outcomes.append(JobOutcome(0, "finished", (), outputs=list(new), made=made, element_id=element.id))
    run_together(settling(outcomes))
    for n in sorted(set(back.values())):
        keep_files([id_ for id_ in by_end["unused"] if back[id_] == n], max(keep_s, rest_s(n, returns.pause)))
    _count(element, by_end, Counter(new.values()))
    look_after_commit("finish", "merge")
    return sum(map(len, by_end.values()))


def _live_files(element: Element, lfns: Sequence[str]) -> dict[str, int]:
    """Files of the element that run, by their names."""
    rows = File.objects.filter(element_id=element.id, dataset_id=element.dataset_id, status="running", lfn__in=lfns)
    return dict(rows.values_list("lfn", "id"))


def _fresh(ends: Sequence[Ends], live: Mapping[str, int]) -> Iterator[_Fresh]:
    seen: set[str] = set()
    for end in ends:
        mine = {live[told.lfn]: told for told in end.inputs if told.lfn in live and told.lfn not in seen}
        seen.update(told.lfn for told in end.inputs)
        if mine:
            yield _Fresh(
                {file_id: told.end for file_id, told in mine.items()},
                {file_id: told.why for file_id, told in mine.items()},
                end.outputs if any(told.end == "finished" for told in mine.values()) else (),
            )


def _limit(end: str, fresh: Sequence[_Fresh]) -> TryLimit | None:
    """A failure at a child is the last one: the child had all tries that were left."""
    if end != "failed":
        return None
    said = next((why for each in fresh for file_id, why in each.why.items() if each.inputs[file_id] == end and why), "")
    return TryLimit(None, 0, f"its tries at a child broker are used up{': ' if said else ''}{said}")


def _given_up(over: Sequence[int], back: Mapping[int, int], fresh: Sequence[_Fresh]) -> TryLimit:
    """Files that came back unused from one element after the other get no other try."""
    said = next((each.why[id_] for each in fresh for id_ in over if each.why.get(id_)), "")
    return TryLimit(None, 0, given_up(max(back[id_] for id_ in over), said))


def _datasets(element: Element, outputs: Sequence[OutputTold], places: OutputPlaces) -> dict[str, Dataset]:
    """The outputs of the task to which these were written, by name. Raises Refused."""
    rows = Dataset.objects.filter(task_id=element.task_id, type__in=OUTPUT_TYPES)
    datasets = {row.dataset_name: row for row in rows}
    for output in outputs:
        if output.dataset not in datasets:
            raise Refused(f"{output.dataset} is no output of task {element.task_id}")
        if output.storage not in places.storages:
            raise Refused(f"{output.lfn} is at storage {output.storage}, which the grid of this broker does not know")
        if not {element.site, *places.sites}.intersection(places.storages[output.storage]):
            raise Refused(f"{output.lfn} is at storage {output.storage}, which no site of this child has or uses")
        if output.path.rpartition("/")[2] != output.lfn:
            raise Refused(f"{output.lfn} is told to be at {output.path}, which ends with another name")
    _check_names(element, outputs, datasets)
    return datasets


def _check_made(element: Element, fresh: Sequence[_Fresh], datasets: Mapping[str, Dataset]) -> None:
    """Of files that finished there is an output in each dataset in which a job may not leave it out. Raises Refused."""
    templates = OutputTemplate.objects.filter(task_id=element.task_id, optional=False, dataset__type="output")
    needed = dict(templates.values_list("dataset_id", "dataset__dataset_name"))
    for each in fresh:
        if "finished" not in each.inputs.values():
            continue
        made = {output.dataset for output in each.outputs}
        there = {id_ for name in made for id_ in (datasets[name].id, datasets[name].template_id)}
        if missing := sorted(needed[id_] for id_ in needed.keys() - there):
            raise Refused(f"files are told to be finished, but no output of theirs in {missing[0]}")


def _check_names(element: Element, outputs: Sequence[OutputTold], datasets: Mapping[str, Dataset]) -> None:
    """Names of outputs are those of this try: no other may have them, here or on a storage. Raises Refused."""
    if not outputs:
        return
    first, last = element.serial_first or 1, element.serial_last or 0
    patterns: dict[int, list[str]] = defaultdict(list)
    for dataset_id, pattern in OutputTemplate.objects.filter(task_id=element.task_id).values_list(
        "dataset_id", "filename_template"
    ):
        patterns[dataset_id].append(pattern)
    for output in outputs:
        dataset = datasets[output.dataset]
        known = patterns[dataset.id] or patterns[dataset.template_id or 0]
        if not any(compiled_name(pattern).may_have(output.lfn, first, last) for pattern in known):
            raise Refused(f"{output.lfn} is no name of {output.dataset} with a serial number of this try, {first} to {last}")


def _make_outputs(
    element: Element, outputs: Sequence[OutputTold], datasets: Mapping[str, Dataset]
) -> tuple[dict[int, int], dict[int, MadeFile]]:
    """Rows and entries of the catalogue for files that a child made: file -> dataset, file -> what was made. Raises Refused where
    the catalogue has another file of a name; what it has of these already is passed over.
    """
    if not outputs:
        return {}, {}
    vo = next(iter(datasets.values())).vo
    entries = {
        (o.dataset, o.lfn): CatalogueEntry(o.dataset, o.lfn, o.size, o.checksum, o.storage, o.n_events, path=o.path)
        for o in outputs
    }
    known = registered_before(vo, list(entries.values()))
    ours = File.objects.filter(element_id=element.id, lfn__in=[lfn for _, lfn in known], type__in=OUTPUT_TYPES)
    made_before = set(ours.values_list("dataset__dataset_name", "lfn"))
    for dataset, lfn in known:
        if (dataset, lfn) not in made_before:
            raise Refused(f"{lfn} of {dataset} is registered already")
        del entries[dataset, lfn]
    ids = take_ids("workqueues_file", len(entries))
    rows = list(zip(ids, entries.values(), strict=True))
    copy_lines(
        "workqueues_file",
        _OUTPUT,
        (
            f"{id_}\t{element.task_id}\trunning\t{element.id}\t{datasets[entry.dataset_name].id}"
            f"\t{datasets[entry.dataset_name].type}\t{escaped(entry.lfn)}"
            for id_, entry in rows
        ),
    )
    run_together(registering(vo, list(entries.values())))
    made = {id_: MadeFile(entry.size, entry.checksum, entry.n_events) for id_, entry in rows}
    return {id_: datasets[entry.dataset_name].id for id_, entry in rows}, made


_OUTPUT = ("id", "task_id", "status", "element_id", "dataset_id", "type", "lfn")
_END_USES = """
UPDATE workqueues_elementinput i SET status = v.status FROM unnest(%s::bigint[], %s::text[]) AS v(file_id, status)
WHERE i.element_id = %s AND i.try_nr = %s AND i.file_id = v.file_id AND i.status = 'live'
"""


def _count(element: Element, by_end: Mapping[str, Sequence[int]], written: Mapping[int, int]) -> None:
    """The uses of the files end; the element and the datasets that were written to count what is new."""
    pairs = [(file_id, USES[end]) for end, ids in by_end.items() for file_id in ids]
    with connection.cursor() as cursor:
        cursor.execute(_END_USES, [[f for f, _ in pairs], [use for _, use in pairs], element.id, element.try_nr])
    for dataset_id, n in sorted(written.items()):
        Dataset.objects.filter(id=dataset_id).update(
            n_files=F("n_files") + n, n_files_to_be_used=F("n_files_to_be_used") + n, n_files_used=F("n_files_used") + n
        )
    Element.objects.filter(id=element.id).update(
        n_files_finished=F("n_files_finished") + len(by_end.get("finished", ())),
        n_files_failed=F("n_files_failed") + len(by_end.get("failed", ())),
    )
