"""Rules over all items of a task: which streams there are, who writes what, and whether every placeholder can be filled.

Source: facts on task parameters 2.2 and 2.4; seed 001, "Naming of output file".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from broker_site.kernel.verdict import Problem
from workqueues.rules.job_parameters import NAME_DIGITS, NameTemplate, ParametersTemplate
from workqueues.rules.placeholders import NUMBERS, TASK_ID, MalformedText, placeholders, row_of
from workqueues.rules.refine.contradictions import Values, n_records
from workqueues.rules.refine.types import Item
from workqueues.rules.task_parameters import nearest, problem

_LATER_FORMS = "AEFMT"
_HINTS = 20
"""Unknown placeholders for which the nearest known one is looked up."""
Found = Iterator[tuple[str, str, str]]


def output_streams(items: Iterable[Item]) -> Mapping[str, str]:
    """Path of each output and log to its stream: OUTPUT0, OUTPUT1, ..., LOG0, ... in the order of definition."""
    streams: dict[str, str] = {}
    counts = {"output": 0, "log": 0}
    for item in items:
        if item.type in ("output", "log"):
            streams[item.path] = f"{item.type.upper()}{counts[item.type]}"
            counts[item.type] += 1
    return streams


def input_items(items: Iterable[Item]) -> list[Item]:
    """Items whose datasets are real inputs."""
    return [item for item in items if item.type == "input"]


def stream_name(item: Item) -> str:
    """The stream of an input: the first placeholder of its text, IN or SEQNUMBER when it has none."""
    return item.stream or ("SEQNUMBER" if item.type == "pseudo_input" else "IN")


def check_items(items: Sequence[Item], values: Values) -> list[Problem]:
    """All problems that show only when the items are seen together."""
    rules = (_inputs(items, values), _pseudo(items, values), _outputs(items, values), _numbers(items, values), _texts(items))
    return [problem(*found) for rule in rules for found in rule]


def writes_once(values: Values, items: Sequence[Item]) -> bool:
    """Whether the task certainly makes one job only."""
    if values.get("noInput"):
        return n_records(values) == 1
    masters = {name for item in input_items(items)[:1] for name in item.names}
    wanted, per_job = values.get("nFiles"), values.get("nFilesPerJob")
    return len(masters) == 1 and wanted is not None and wanted <= (per_job or 1)


def _inputs(items: Sequence[Item], values: Values) -> Found:
    inputs = input_items(items)
    if values.get("noInput"):
        for item in inputs:
            yield (
                f"{item.path}.dataset",
                "not_supported_yet",
                "an input beside noInput is a secondary dataset: not supported yet (row J4)",
            )
        return
    if not inputs:
        yield "jobParameters", "required", "the task reads nothing: name an input dataset or set noInput"
        return
    first = inputs[0]
    for name in ("nFiles", "nEvents"):
        if len(first.names) > 1 and name in values:
            yield name, "not_supported_yet", f"{name} over several input datasets is not supported yet (row J26)"
    for item in inputs[1:]:
        if item.names != first.names:
            yield f"{item.path}.dataset", "not_supported_yet", "a secondary dataset is not supported yet (row J4)"
        elif stream_name(item) != stream_name(first):
            yield f"{item.path}.value", "contradiction", f"the same dataset is the stream {stream_name(first)} before"
    for item in inputs:
        if re.fullmatch(r"(OUTPUT|LOG)\d+|SEQNUMBER", stream_name(item)) or row_of(stream_name(item)):
            yield f"{item.path}.value", "template", f"{stream_name(item)} cannot be the stream of an input"


def _pseudo(items: Sequence[Item], values: Values) -> Found:
    pseudo = [item for item in items if item.type == "pseudo_input"]
    for item in pseudo:
        if not values.get("noInput"):
            yield (
                f"{item.path}.dataset",
                "not_supported_yet",
                "a numbered sequence beside input files is not supported yet (row J19)",
            )
        elif (stream_name(item), item.offset) != (stream_name(pseudo[0]), pseudo[0].offset):
            yield f"{item.path}.dataset", "contradiction", "one sequence has one stream and one offset"


def _outputs(items: Sequence[Item], values: Values) -> Found:
    read = {name for item in items if item.type in ("input", "pseudo_input") for name in item.names}
    kinds: dict[str, str] = {}
    shapes: dict[str, str] = {}
    alone = writes_once(values, items)
    for item in items:
        if item.type not in ("output", "log"):
            continue
        for name in item.names:
            if name in read:
                yield f"{item.path}.dataset", "contradiction", f"{name} is an input of the task"
            if kinds.setdefault(name, item.type) != item.type:
                yield f"{item.path}.dataset", "contradiction", f"{name} is {kinds[name]} and {item.type}"
        if not item.file_name:
            continue
        shape = _shape(item.file_name)
        if shape in shapes:
            yield f"{item.path}.value", "contradiction", f"writes the same file names as {shapes[shape]}"
        shapes.setdefault(shape, item.path)
        if not alone and not NameTemplate(item.file_name).numbered:
            yield f"{item.path}.value", "template", "several jobs write: the file name needs ${SN}"


def _shape(file_name: str) -> str:
    """The template with its ways to write one serial number made equal."""
    return re.sub(rf"\$\{{SN(/P|:0{NAME_DIGITS}d)?\}}", "${SN}", file_name)


def _numbers(items: Sequence[Item], values: Values) -> Found:
    """Offsets of seeds and first events: one for each in a task."""
    offsets: dict[str, int] = {}
    for item in items:
        if item.type != "number":
            continue
        used = [name for name in ("RNDMSEED", "FIRSTEVENT") if "${" + name + "}" in item.value]
        if item.offset and not used:
            yield f"{item.path}.offset", "contradiction", "an offset needs ${RNDMSEED} or ${FIRSTEVENT} in the text"
        for name in used:
            if offsets.setdefault(name, item.offset) != item.offset:
                yield f"{item.path}.offset", "contradiction", f"two offsets for {name}"
    if values.get("noInput"):
        return
    for item in items:
        if "${FIRSTEVENT}" in item.value:
            yield f"{item.path}.value", "not_supported_yet", "FIRSTEVENT of input files is not supported yet (row J12)"


def _texts(items: Sequence[Item]) -> Found:
    """Every placeholder on the command line can be filled."""
    streams = {stream_name(item) for item in items if item.type in ("input", "pseudo_input")}
    known = {*streams, *output_streams(items).values(), *NUMBERS, TASK_ID}
    strange: set[str] = set()
    for item in items:
        text = item.value.rpartition("=")[0] if item.type in ("output", "log") else item.value
        try:
            marks = placeholders(text)
        except MalformedText as wrong:
            if item.type in ("output", "log"):
                yield f"{item.path}.value", "template", str(wrong)
            continue
        for mark in marks:
            if mark.form in _LATER_FORMS and mark.form:
                yield (
                    f"{item.path}.value",
                    "not_supported_yet",
                    f"{mark.text}: the form /{mark.form} is not supported yet (row J26)",
                )
                continue
            unknown = [name for name in mark.names if name not in known]
            for name in unknown:
                strange.add(name)
                yield f"{item.path}.value", *_unknown(name, known if len(strange) <= _HINTS else ())
            if not unknown:
                yield from _form(f"{item.path}.value", mark.text)


def _unknown(name: str, known: Iterable[str]) -> tuple[str, str]:
    if row := row_of(name):
        return "not_supported_yet", f"the placeholder {name} is not supported yet (row {row})"
    if name == "SEQNUMBER":
        return "template", "SEQNUMBER needs an item for the dataset seq_number"
    near = nearest(name, known)
    return "template", f"unknown placeholder {name}" + (f"; the nearest known one is {near}" if near else "")


def _form(field: str, text: str) -> Found:
    try:
        ParametersTemplate(text)
    except MalformedText as wrong:
        yield field, "template", str(wrong)
