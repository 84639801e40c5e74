"""Rules over all items of a task: which streams there are, who writes what, and whether every placeholder can be filled.

Source: facts on task parameters 2.2 and 2.4; seed 001, "Naming of output file".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.jobs.file_names import bad_middle_name
from workqueues.rules.jobs.job_parameters import NameTemplate, ParametersTemplate, compiled_name
from workqueues.rules.jobs.placeholders import MIDDLE_NAME, NUMBERS, ORIGIN, TASK_ID, MalformedText, placeholders, row_of
from workqueues.rules.jobs.premerged import MERGE_LOG_STREAM, STREAM_PREFIX
from workqueues.rules.jobs.sandbox import SOURCE_URL
from workqueues.rules.refine.attributes import OF_A_MASTER, shown
from workqueues.rules.refine.contradictions import MOST_RECORDS, cuts_events, n_records
from workqueues.rules.refine.items import MERGE_LOG
from workqueues.rules.refine.log_names import names_beside_logs
from workqueues.rules.refine.merge_spec import check_merging
from workqueues.rules.refine.name_shapes import Shape, shape_of
from workqueues.rules.refine.prepro_spec import check_prepro_spec
from workqueues.rules.refine.types import MOST_LISTED, Item
from workqueues.rules.task_parameters import TaskParameters
from workqueues.states import MASTER_TYPES, OUTPUT_TYPES

_LATER_FORMS = "F"
MOST_MIDDLE_NAMES = 50_000
"""Most pairs of an input dataset and an output that is named by it."""
_HINTS = 20
"""Unknown placeholders for which the nearest known one is looked up."""
Faults = Iterator[tuple[str, str, str]]


def output_streams(items: Iterable[Item]) -> Mapping[str, str]:
    """Path of each output and log to its stream: OUTPUT0, OUTPUT1, ..., LOG0, ... in the order of definition, and LOG_MERGE."""
    streams: dict[str, str] = {}
    counts = dict.fromkeys(OUTPUT_TYPES, 0)
    for item in items:
        if item.path == MERGE_LOG:
            streams[item.path] = MERGE_LOG_STREAM
        elif item.type in OUTPUT_TYPES:
            streams[item.path] = f"{item.type.upper()}{counts[item.type]}"
            counts[item.type] += 1
    return streams


def input_items(items: Iterable[Item]) -> list[Item]:
    """Items whose datasets are real inputs."""
    return [item for item in items if item.type == "input"]


def sequence_of(items: Iterable[Item]) -> Item | None:
    """The first item of the task's numbered sequence, if it has one."""
    return next((item for item in items if item.type == "pseudo_input"), None)


def records_of(items: Sequence[Item], task: TaskParameters) -> int | None:
    """How many pseudo files a task without input gets: what its sequence says, else what its parameters come to."""
    sequence = sequence_of(items)
    return sequence.n_records if sequence is not None and sequence.n_records else n_records(task)


def check_items(items: Sequence[Item], task: TaskParameters) -> list[Problem]:
    """All problems that show only when the items are seen together."""
    rules = (
        _inputs(items, task),
        _named_files(items, task),
        _sandbox(items, task),
        _deals(items, task),
        _pseudo(items, task),
        _outputs(items, task),
        names_beside_logs(items),
        _numbers(items),
        _first_events(items, task),
        _names(items, task),
        _texts(items, task),
        check_merging(task, items, output_streams(items)),
        check_prepro_spec(task),
    )
    return [problem(*fault) for fault in islice(chain.from_iterable(rules), MOST_LISTED + 1)]


def writes_once(task: TaskParameters, items: Sequence[Item]) -> bool:
    """Whether the task certainly makes one job only."""
    if task.noInput:
        return records_of(items, task) == 1 and not task.period
    masters = {name for item in input_items(items)[:1] for name in item.names}
    wanted, per_job = task.nFiles or sum(len(item.files) for item in input_items(items)[:1]), task.nFilesPerJob
    cut = any(
        getattr(task, name) for name in ("tgtNumEventsPerJob", "nGBPerJob", "groupBoundaryID", "respectLB", "useFileAsSourceLFN")
    )
    if cut or cuts_events(task):
        return False
    return len(masters) == 1 and wanted > 0 and wanted <= (per_job or 1)


def _inputs(items: Sequence[Item], task: TaskParameters) -> Faults:
    inputs = input_items(items)
    if not inputs:
        if not task.noInput:
            yield "jobParameters", "required", "the task reads nothing: name an input dataset or set noInput"
        return
    for name in ("nFiles", "nEvents"):
        if len(inputs[0].names) > 1 and getattr(task, name) and not task.noInput:
            yield name, "not_supported_yet", f"{name} over several input datasets is not supported yet"
    first: dict[str, Item] = {}
    owner: dict[str, Item] = {}
    for item in inputs:
        again = [name for name in item.names if name in first]
        for name in again:
            if first[name].stream != item.stream:
                yield f"{item.path}.value", "contradiction", f"the same dataset is the stream {first[name].stream} before"
            elif item.attributes and first[name].attributes != item.attributes:
                yield f"{item.path}.attributes", "contradiction", f"{first[name].path} says something else of {name}"
            elif item.files and item.files != first[name].files:
                yield f"{item.path}.files", "contradiction", f"{first[name].path} says something else of {name}"
            yield from _places(item, first[name], name)
        if not again and owner.setdefault(item.stream, item) is not item:
            message = f"{item.stream} is the stream of {owner[item.stream].path}: other datasets need a placeholder of their own"
            yield f"{item.path}.value", "contradiction", message
        first |= {name: item for name in item.names if name not in first}
        if re.fullmatch(rf"(OUTPUT|LOG)\d+|SEQNUMBER|{ORIGIN}", item.stream) or row_of(item.stream):
            yield f"{item.path}.value", "template", f"{item.stream} cannot be the stream of an input"


def _named_files(items: Sequence[Item], task: TaskParameters) -> Faults:
    if task.useInFilesWithNewAttemptNr and not any(item.files for item in input_items(items)):
        yield "useInFilesWithNewAttemptNr", "contradiction", "it is about the files that an item names, and none names any"


def _sandbox(items: Sequence[Item], task: TaskParameters) -> Faults:
    """A new archive stands where another one stood."""
    if task.fixedSandbox and not task.buildSpec and not any(i.value == f"-a {task.fixedSandbox}" for i in items):
        yield "fixedSandbox", "contradiction", "no item of jobParameters is -a and an archive, in whose place it would stand"


def _places(item: Item, first: Item, dataset: str) -> Faults:
    """A dataset has one container, one storage token and one destination; a later item need not repeat them."""
    for key, said, before in (
        ("container", item.container, first.container),
        ("token", item.token, first.token),
        ("destination", item.destination, first.destination),
    ):
        if said and said != before:
            yield f"{item.path}.{key}", "contradiction", f"{first.path} says {before or 'nothing'} of {dataset}"


def _deals(items: Sequence[Item], task: TaskParameters) -> Faults:
    """How the files of secondary datasets are dealt out; those of a master each make their jobs once (decision F1)."""
    inputs = input_items(items)
    if inputs and not task.noInput:
        codes = [word.partition("=")[0] for word in inputs[0].attributes.split(",") if word]
        for code in codes:
            if code not in OF_A_MASTER:
                message = (
                    f"{shown(code)} is for secondary datasets; the files of the first input make the jobs, each is used once"
                )
                yield f"{inputs[0].path}.{shown(code)}", "contradiction", message
    partners = [item for item in inputs if "ic" in item.attributes.split(",")]
    if sum(len(item.names) for item in partners) == 1:
        yield f"{partners[0].path}.indexConsistent", "contradiction", "indexConsistent needs a second dataset that has it too"
    if task.noInput and not task.nEventsPerJob:
        for item in inputs:
            if "er=" in item.attributes:
                message = "events of the jobs are not known: give nEventsPerJob"
                yield f"{item.path}.eventRatio", "contradiction", message
    for item in inputs:
        if "rd" in item.attributes.split(",") and any(getattr(task, n) for n in ("orderByLB", "respectLB", "groupBoundaryID")):
            yield f"{item.path}.random", "contradiction", "files ordered by lumi block or boundary are in no random order"


def _pseudo(items: Sequence[Item], task: TaskParameters) -> Faults:
    pseudo = [item for item in items if item.type == "pseudo_input"]
    for item in pseudo[1:]:
        first = pseudo[0]
        if (item.stream, item.offset, item.n_records or first.n_records) != (first.stream, first.offset, first.n_records):
            yield f"{item.path}.dataset", "contradiction", "one sequence has one stream, one offset and one length"
    if pseudo and pseudo[0].stream in {item.stream for item in input_items(items)}:
        yield f"{pseudo[0].path}.value", "contradiction", f"{pseudo[0].stream} is the stream of a dataset"
    if not task.noInput:
        return
    count, said = records_of(items, task), n_records(task)
    if count is None:
        yield (
            "nFiles",
            "required",
            "a task without input needs nFiles, or nEvents with nEventsPerJob, or a sequence with num_records",
        )
    elif count > MOST_RECORDS:
        yield "nFiles", "range", f"{count} jobs, at most {MOST_RECORDS} for a task without input"
    elif said is not None and said != count and pseudo:
        yield f"{pseudo[0].path}.num_records", "contradiction", f"{count} records, but {said} jobs follow from nFiles or nEvents"


def _outputs(items: Sequence[Item], task: TaskParameters) -> Faults:
    read = {name for item in items if item.type in MASTER_TYPES for name in item.names}
    kinds: dict[str, str] = {}
    first: dict[str, Item] = {}
    named: list[tuple[Item, NameTemplate]] = []
    shapes: dict[Shape, Item] = {}
    alone = writes_once(task, items)
    for item in items:
        if item.type not in OUTPUT_TYPES:
            continue
        for name in item.names:
            if name in read:
                yield f"{item.path}.dataset", "contradiction", f"{name} is an input of the task"
            if kinds.setdefault(name, item.type) != item.type:
                yield f"{item.path}.dataset", "contradiction", f"{name} is {kinds[name]} and {item.type}"
            yield from _places(item, first.setdefault(name, item), name)
        if not item.file_name:
            continue
        template, shape = compiled_name(item.file_name), shape_of(item.file_name)
        if twin := shapes.get(shape) or next((other for known, other in shapes.items() if known.meets(shape)), None):
            yield f"{item.path}.value", "contradiction", f"writes the same file names as {twin.path}"
        shapes.setdefault(shape, item)
        named.append((item, template))
        if not alone and not template.numbered:
            yield f"{item.path}.value", "template", "several jobs write: the file name needs ${SN}"
    yield from _sources(named)


def _sources(named: Sequence[tuple[Item, NameTemplate]]) -> Faults:
    """What the payload calls an output must not be what another output is called."""
    known: dict[str, Item] = {}
    for item, _ in named:
        if not item.source_name:
            continue
        if known.setdefault(item.source_name, item) is not item:
            yield f"{item.path}.sourceName", "contradiction", f"{known[item.source_name].path} is written under that name too"
        for other, template in named:
            if other is not item and template.may_be(item.source_name):
                yield f"{item.path}.sourceName", "contradiction", f"a file of {other.path} may have that name"


def _numbers(items: Sequence[Item]) -> Faults:
    """Offsets of seeds and first events: one for each in a task."""
    offsets: dict[str, int] = {}
    for item in items:
        if item.type != "number":
            continue
        used = [name for name in ("RNDMSEED", "FIRSTEVENT") if uses(item.value, name)]
        if item.offset and not used:
            yield f"{item.path}.offset", "contradiction", "an offset needs ${RNDMSEED} or ${FIRSTEVENT} in the text"
        for name in used:
            if offsets.setdefault(name, item.offset) != item.offset:
                yield f"{item.path}.offset", "contradiction", f"two offsets for {name}"


def _first_events(items: Sequence[Item], task: TaskParameters) -> Faults:
    """The number of a job's first event counts the events of the jobs before, also where no input has them."""
    if task.noInput and not task.nEventsPerJob:
        for item in items:
            if uses(item.value, "FIRSTEVENT"):
                yield f"{item.path}.value", "events", "${FIRSTEVENT} needs the events of each job: give nEventsPerJob"


def uses(text: str, name: str) -> bool:
    """Whether the placeholder stands in the text, in any form."""
    try:
        return any(name in mark.names for mark in placeholders(text))
    except MalformedText:
        return False


def _names(items: Sequence[Item], task: TaskParameters) -> Faults:
    """Fields of the input's name in names of outputs and on the command line."""
    fields = task.addNthFieldToLFN
    users = [item for item in items if uses(item.value, MIDDLE_NAME)]
    if not fields:
        for item in users:
            yield f"{item.path}.value", "template", "${MIDDLENAME} needs addNthFieldToLFN"
        if task.useFileAsSourceLFN:
            yield (
                "useFileAsSourceLFN",
                "contradiction",
                "it says where the fields of addNthFieldToLFN come from, which is not given",
            )
        return
    if not users:
        yield "addNthFieldToLFN", "contradiction", "no text of the task has ${MIDDLENAME}, where the fields would stand"
    if task.noInput:
        yield "addNthFieldToLFN", "contradiction", "a task without input has no name to take fields of"
        return
    if task.useFileAsSourceLFN:
        if task.groupBoundaryID:
            message = "a job has files of one field: boundaries of the files cannot bind it too"
            yield "groupBoundaryID", "contradiction", message
        return
    names = [name for item in input_items(items)[:1] for name in item.names]
    named = [item for item in items if item.file_name]
    if len(names) * len(named) > MOST_MIDDLE_NAMES:
        message = f"{len(names)} input datasets give {len(named)} outputs their names, at most {MOST_MIDDLE_NAMES} pairs"
        yield "addNthFieldToLFN", "range", message
        return
    for name in names:
        for item in named:
            if wrong := bad_middle_name(item.file_name, name, fields):
                yield "addNthFieldToLFN", "template", wrong


def _texts(items: Sequence[Item], task: TaskParameters) -> Faults:
    """Every placeholder on the command line can be filled."""
    numbers = {*NUMBERS, *(item.stream for item in items if item.type == "pseudo_input")}
    streams = {item.stream for item in items if item.type == "input"}
    written = output_streams(item for item in items if not item.merge_only).values()
    known = {*streams, *numbers, *written, TASK_ID, MIDDLE_NAME, *([SOURCE_URL] if task.sourceURL else [])}
    strange: set[str] = set()
    for item in items:
        text = item.value.rpartition("=")[0] if item.type in OUTPUT_TYPES else item.value
        try:
            marks = placeholders(text)
        except MalformedText as wrong:
            if item.type in OUTPUT_TYPES:
                yield f"{item.path}.value", "template", str(wrong)
            continue
        for mark in marks:
            if mark.form in _LATER_FORMS and mark.form:
                yield (
                    f"{item.path}.value",
                    "not_supported_yet",
                    f"{mark.text}: the form /{mark.form} is not supported yet",
                )
                continue
            if SOURCE_URL in mark.names and mark.text != f"${{{SOURCE_URL}}}":
                yield f"{item.path}.value", "template", f"{mark.text}: the URL of the sources is written ${{{SOURCE_URL}}}"
                continue
            unknown = [name for name in mark.names if name not in known]
            for name in unknown:
                strange.add(name)
                yield f"{item.path}.value", *_unknown(name, known if len(strange) <= _HINTS else ())
            if mark.form == "M" and not unknown and not numbers.issuperset(mark.names):
                yield f"{item.path}.value", "template", f"{mark.text}: only numbers can be calculated with"
            elif not unknown:
                yield from _form(f"{item.path}.value", mark.text)


def _unknown(name: str, known: Iterable[str]) -> tuple[str, str]:
    if row_of(name):
        return "not_supported_yet", f"the placeholder {name} is not supported yet"
    if name.startswith(STREAM_PREFIX):
        return "template", f"{name} stands for files that are merged, which only the jobParameters of mergeSpec know"
    if name == ORIGIN:
        return "template", "$ORIGINPANDAID stands in the names of jobs only, which are made of that of the task"
    if name == SOURCE_URL:
        return "template", "${SURL} needs sourceURL"
    if name == "SEQNUMBER":
        return "template", "SEQNUMBER needs an item for the dataset seq_number"
    near = nearest(name, known)
    return "template", f"unknown placeholder {name}" + (f"; the nearest known one is {near}" if near else "")


def _form(field: str, text: str) -> Faults:
    try:
        ParametersTemplate(text)
    except MalformedText as wrong:
        yield field, "template", str(wrong)
