"""The datasets of a task and how its outputs are named: the rows that refining makes of the items.

Masters first, then secondary datasets, the numbered sequence and seeds, then outputs and logs. Source: facts on task parameters
2.2, on splitting 8.3 and 8.4; seed 001, "Pseudo datasets and files". Not here: columns and split rule of the task (`plan`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.jobs import premerged
from workqueues.rules.jobs.premerged import MERGE_LOG_STREAM
from workqueues.rules.refine.contradictions import cuts_events
from workqueues.rules.refine.templates import input_items, output_streams, records_of, sequence_of, uses
from workqueues.rules.refine.types import DatasetFacts, DatasetPlan, Item, OutputTemplatePlan
from workqueues.rules.task_parameters import TaskParameters
from workqueues.states import INPUT_TYPES, OUTPUT_TYPES, PREMERGED_TYPES

SEED_DATASET = "pseudo_rndmseed"
PSEUDO_DATASET = "pseudo_dataset"
SEQUENCE_DATASET = "pseudo_seq_number"
USED_AGAIN = ("repeat", "nosplit", "ru")


def dataset_plans(items: Sequence[Item], task: TaskParameters, known: Mapping[str, DatasetFacts]) -> tuple[DatasetPlan, ...]:
    """All datasets of the task, in the order in which their rows are made."""
    rows = [_records(items, task)] if task.noInput else list(_masters(items, task, known))
    last_master = len(rows) - 1
    rows += _secondaries(items, task, known, last_master)
    if any(uses(item.value, "RNDMSEED") for item in items):
        rows.append(DatasetPlan(SEED_DATASET, "random_seed", "RNDMSEED", master_index=0, offset=offset_of(items, "RNDMSEED")))
    outputs = list(_outputs(items, task))
    rows += outputs
    if task.mergeOutput:
        merged = {name for item in items if item.type in OUTPUT_TYPES and not item.merge_only for name in item.names}
        rows += [_premerged(dataset, at_end=task.umNameAtEnd) for dataset in outputs if dataset.name in merged]
    return tuple(rows)


def _premerged(dataset: DatasetPlan, *, at_end: bool) -> DatasetPlan:
    """What jobs write whose outputs are merged into this dataset. It is kept no longer than what is transient."""
    return replace(
        dataset,
        name=premerged.dataset_name(dataset.name, at_end=at_end),
        type=f"{premerged.TYPE_PREFIX}{dataset.type}",  # type: ignore[arg-type]
        stream_name=premerged.stream_name(dataset.stream_name),
        attributes=",".join(filter(None, [dataset.attributes.removesuffix("tr=1").removesuffix(","), "tr=1"])),
        container="",
        storage_token="",
        destination="",
    )


def template_plans(
    items: Sequence[Item], streams: Mapping[str, str], datasets: Sequence[DatasetPlan]
) -> tuple[OutputTemplatePlan, ...]:
    """How the files of each output are named."""
    index = {d.name: i for i, d in enumerate(datasets) if d.type not in INPUT_TYPES}
    final = tuple(
        OutputTemplatePlan(
            dataset_index=index[item.names[0]],
            filename_template=item.file_name,
            stream_name=streams[item.path],
            serial_nr=item.offset,
            out_type=item.type,  # type: ignore[arg-type]
            source_name=item.source_name,
            optional=item.optional,
        )
        for item in items
        if item.type in OUTPUT_TYPES
    )
    before = {d.stream_name: i for i, d in enumerate(datasets) if d.type in PREMERGED_TYPES}
    if not before:
        return final
    only = {streams[item.path] for item in items if item.merge_only}
    merged = [template for template in final if template.stream_name not in only]
    return (*(_merged_file(t, only) for t in final), *(_premerged_file(t, datasets, before) for t in merged))


def _merged_file(template: OutputTemplatePlan, only: Collection[str]) -> OutputTemplatePlan:
    """How the files of the template are named by merge jobs, which have streams of their own (`only`).

    What jobs call their files says nothing of these, and the logs are one output more where merge jobs have another log.
    """
    if template.stream_name in only:
        return template
    merged_log = template.out_type == "log" and MERGE_LOG_STREAM in only
    return replace(template, source_name="", out_type="output" if merged_log else template.out_type)


def _premerged_file(
    template: OutputTemplatePlan, datasets: Sequence[DatasetPlan], before: Mapping[str, int]
) -> OutputTemplatePlan:
    """How the files are named that are merged into those of the template; `before`: their datasets by stream.

    Their serial numbers begin where those of the template do: the same numbers keep them from the names of other tasks, too.
    """
    return replace(
        template,
        dataset_index=before[premerged.stream_name(datasets[template.dataset_index].stream_name)],
        filename_template=premerged.file_name(template.filename_template),
        stream_name=premerged.stream_name(template.stream_name),
        out_type=f"{premerged.TYPE_PREFIX}{template.out_type}",  # type: ignore[arg-type]
    )


def offset_of(items: Sequence[Item], name: str) -> int:
    """The offset of the item whose text has the placeholder `name`."""
    return next((item.offset for item in items if item.type == "number" and uses(item.value, name)), 0)


def events_needed(items: Sequence[Item], task: TaskParameters) -> str:
    """The parameter or placeholder for which the events of every master file must be known; empty without one."""
    if cuts_events(task):
        return "nEventsPerJob"
    if task.tgtNumEventsPerJob:
        return "tgtNumEventsPerJob"
    if any(_code(item, "er") for item in input_items(items)):
        return "eventRatio"
    return "FIRSTEVENT" if any(uses(item.value, "FIRSTEVENT") for item in items) else ""


def check_events(items: Sequence[Item], task: TaskParameters, known: Mapping[str, DatasetFacts]) -> Iterator[Problem]:
    """Inputs of which the catalogue does not know what the task counts on, as far as that shows before they are fed."""
    inputs = input_items(items)
    needed = events_needed(items, task)
    if inputs and needed and not task.noInput and not task.nEventsPerInputFile:
        for name in inputs[0].names:
            facts = known.get(name)
            part = task.nFiles or task.nEvents or task.skipFilesUsedBy or inputs[0].files
            if facts and facts.n_uncounted and (not part or facts.n_uncounted == facts.n_files):
                field = needed if needed in TaskParameters.model_fields else inputs[0].path
                yield problem(field, "events", f"{unknown_events(needed, name)}; give nEventsPerInputFile")
    for item in inputs if task.noInput else inputs[1:]:
        for name in item.names:
            if _code(item, "er") and name in known and known[name].n_uncounted:
                yield problem(f"{item.path}.eventRatio", "events", unknown_events("eventRatio", name))


def unknown_events(needed: str, name: str) -> str:
    """Why a task cannot go on that counts events where nobody did."""
    return f"{needed} needs the events of each input file, and the catalogue does not know those of some files of {name}"


def _code(item: Item, code: str) -> bool:
    return any(word.partition("=")[0] == code for word in item.attributes.split(","))


def _records(items: Sequence[Item], task: TaskParameters) -> DatasetPlan:
    """The numbered pseudo files of a task without input; they are its sequence too, so a retried file keeps its number."""
    sequence = sequence_of(items)
    offset = sequence.offset if sequence else 0
    return DatasetPlan(
        name=PSEUDO_DATASET,
        type="pseudo_input",
        stream_name=sequence.stream if sequence else "SEQNUMBER",
        state="closed",
        attributes=f"of={offset}" if offset else "",
        n_files=None if task.period else records_of(items, task),
        n_events=task.nEvents or None,
        events_per_file=task.nEventsPerJob or None,
        offset=offset,
    )


def _masters(items: Sequence[Item], task: TaskParameters, known: Mapping[str, DatasetFacts]) -> Iterator[DatasetPlan]:
    first = input_items(items)[0]
    for name in first.names:
        yield DatasetPlan(
            name=name,
            type="input",
            stream_name=first.stream,
            state=known[name].state if name in known else "missing",
            data_vo=known[name].data_vo if name in known else "",
            attributes=first.attributes,
            n_files=task.nFiles or None,
            n_events=task.nEvents or None,
            events_per_file=task.nEventsPerInputFile or None,
            real_events=task.useRealNumEvents,
            needs_events=events_needed(items, task),
            container=first.container,
            storage_token=first.token,
            files=_files_of(first, name),
        )


def _secondaries(
    items: Sequence[Item], task: TaskParameters, known: Mapping[str, DatasetFacts], master: int
) -> Iterator[DatasetPlan]:
    """Later inputs, each dataset once, linked to the last master; beside files also the numbered sequence, a record a job."""
    inputs = input_items(items)
    seen = set() if task.noInput or not inputs else set(inputs[0].names)
    for item in inputs:
        for name in (name for name in item.names if name not in seen):
            seen.add(name)
            yield DatasetPlan(
                name=name,
                type="input",
                stream_name=item.stream,
                master_index=master,
                state=known[name].state if name in known else "missing",
                data_vo=known[name].data_vo if name in known else "",
                attributes=_dealt(item, task),
                needs_events="eventRatio" if _code(item, "er") else "",
                container=item.container,
                storage_token=item.token,
                files=_files_of(item, name),
            )
    sequence = sequence_of(items)
    if sequence is not None and not task.noInput:
        said = [f"nr={sequence.n_records}"] * bool(sequence.n_records) + [f"of={sequence.offset}"] * bool(sequence.offset)
        yield DatasetPlan(
            name=SEQUENCE_DATASET,
            type="pseudo_input",
            stream_name=sequence.stream,
            master_index=master,
            state="closed",
            attributes=",".join(["np=1", *said]),
            n_files=sequence.n_records,
            offset=sequence.offset,
        )


def _files_of(item: Item, name: str) -> tuple[str, ...]:
    """The files that the item names of one of its datasets; of those that were added to it all are used."""
    return () if name in item.further else item.files


def _dealt(item: Item, task: TaskParameters) -> str:
    """The attributes of a secondary dataset.

    With reuseSecOnDemand its files may be used again, and with manytime, which are not tracked (decision F1) and would run out.
    """
    words = [word for word in item.attributes.split(",") if word]
    if (task.reuseSecOnDemand or "manytime" in words) and not set(words) & set(USED_AGAIN):
        words.append("ru")
    return ",".join(words)


def _outputs(items: Sequence[Item], task: TaskParameters) -> Iterator[DatasetPlan]:
    """Each dataset that is written, once; where the task instantiates, these are templates that nothing is written to.

    What a job may leave out is said of each output (its template); of a dataset only where all of them may be left out.
    """
    streams = output_streams(items)
    required = {item.names[0] for item in items if item.type in OUTPUT_TYPES and not item.optional}
    transient = {item.names[0] for item in items if item.type in OUTPUT_TYPES and item.transient}
    seen: set[str] = set()
    prefix = "tmpl_" if task.instantiates else ""
    for item in items:
        if item.type not in OUTPUT_TYPES or item.names[0] in seen:
            continue
        seen.add(item.names[0])
        yield DatasetPlan(
            name=item.names[0],
            type=f"{prefix}{item.type}",  # type: ignore[arg-type]
            stream_name=streams[item.path],
            provenance_index=None if task.noInput else 0,
            attributes=",".join(["an"] * (item.names[0] not in required) + ["tr=1"] * (item.names[0] in transient)),
            container=item.container,
            storage_token=item.token,
            destination=item.destination or task.destination,
        )
