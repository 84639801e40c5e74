"""Reading the items of jobParameters and log: their keys, their datasets, their placeholders.

Here: one item by itself. Not here: rules over several items (`templates`) or with other parameters (`contradictions`).
Source: facts on task parameters 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import MOST_HINTS, MOST_PROBLEMS, found, problem
from workqueues.rules.jobs.job_parameters import compiled_name
from workqueues.rules.jobs.lengths import DATASET, FILE_NAME, LARGEST_NUMBERS, TEMPLATE
from workqueues.rules.jobs.placeholders import MIDDLE_NAME, NUMBERS, TASK_ID, MalformedText, placeholders
from workqueues.rules.jobs.sandbox import SOURCE_URL
from workqueues.rules.refine.attributes import input_attributes
from workqueues.rules.refine.types import Item, ItemType
from workqueues.rules.task_parameters import items as documents
from workqueues.rules.task_parameters import stream_of
from workqueues.rules.task_parameters.declaration import parameters, read
from workqueues.states import MASTER_TYPES, OUTPUT_TYPES

PSEUDO_NAMES = ("seq_number", "pseudo_dataset")
"""Dataset names that stand for numbered records, not for files."""
MERGE_LOG = "log_merge"
"""The parameter that is the item of the log of merge jobs."""
MOST_ITEMS = 1000
"""Most items in one list, and most datasets in one item."""
MOST_FILES = 10_000
"""Most files that an item names."""
MOST_DATASETS = 10_000
"""Most names of datasets in a task."""
MOST_TEXT = 200_000
"""Most characters in the values of all items of a task: each placeholder in them is looked at several times."""

MODELS: Mapping[ItemType, type[documents.Item]] = {
    "constant": documents.Constant,
    "input": documents.Input,
    "pseudo_input": documents.PseudoInput,
    "number": documents.Number,
    "output": documents.Output,
    "log": documents.Log,
}
KEYS = {key: parameter for model in MODELS.values() for key, parameter in parameters(model).items()}
"""All keys that items may have."""


def read_items(params: Mapping[str, object]) -> tuple[tuple[Item, ...], list[Problem]]:
    """All items that can be read, in order, those of `log` and `log_merge` last, and what is wrong with the others."""
    items: list[Item] = []
    problems: list[Problem] = []
    vo = params.get("vo")
    own = f"{vo}:" if vo and isinstance(vo, str) else ""
    names = text = 0
    lists = (
        ("jobParameters", _listed(params.get("jobParameters"))),
        ("log", _logs(params.get("log"))),
        (MERGE_LOG, _merge_log(params.get(MERGE_LOG))),
    )
    for field, several in lists:
        if several is None:
            wanted = {"jobParameters": "a list of items", MERGE_LOG: "an item"}.get(field, "an item or a list of items")
            problems.append(problem(field, "type", f"expected {wanted}, found {found(params.get(field))}"))
            continue
        if len(several) > MOST_ITEMS:
            problems.append(problem(field, "range", f"{len(several)} items, at most {MOST_ITEMS}"))
        for path, raw in several[:MOST_ITEMS]:
            if len(problems) >= MOST_PROBLEMS:
                return _with_streams(items), [*problems, problem(path, "more", "further items were not looked at")]
            item, wrong = _item(path, raw, own, in_log=field != "jobParameters")
            problems += wrong
            names += len(item.names) if item else 0
            text += len(item.value) if item else 0
            if names > MOST_DATASETS or text > MOST_TEXT:
                much = f"names more than {MOST_DATASETS} datasets"
                if text > MOST_TEXT:
                    much = f"has more than {MOST_TEXT} characters in the values of its items"
                return _with_streams(items), [*problems, problem(path, "range", f"the task {much}")]
            if item is not None:
                items.append(item)
    return _with_streams(items), problems


def _with_streams(items: Sequence[Item]) -> tuple[Item, ...]:
    """Inputs without a placeholder get a stream: SEQNUMBER, that of the same dataset before, or IN, IN2, ... by their place."""
    streams: dict[str, str] = {}
    complete, n = [], 0
    for item in items:
        stream = item.stream
        if item.type == "input":
            n += 1
            known = streams.get(item.names[0], "") if item.names else ""
            stream = stream or known or ("IN" if n == 1 else f"IN{n}")
            streams |= {name: stream for name in item.names if name not in streams}
        elif item.type == "pseudo_input":
            stream = stream or "SEQNUMBER"
        complete.append(replace(item, stream=stream))
    return tuple(complete)


def with_further_datasets(items: Sequence[Item], params: Mapping[str, object]) -> tuple[tuple[Item, ...], list[Problem]]:
    """The items, with the datasets that dsFor and a stream name besides for the first input of that stream; what is wrong."""
    own, problems, further = f"{params.get('vo')}:", list[Problem](), dict[str, tuple[str, ...]]()
    for name, text in params.items():
        if (stream := stream_of(name)) and isinstance(text, str) and text.strip():
            further[stream] = _datasets(name, "input", text, own, problems)
    complete = []
    for item in items:
        names = further.pop(item.stream, ()) if item.type == "input" else ()
        further_names = tuple(name for name in names if name not in item.names)
        complete.append(replace(item, names=(*item.names, *dict.fromkeys(further_names)), further=further_names))
    problems += [problem(f"dsFor{stream}", "exists", f"no input of the task has the stream {stream}") for stream in further]
    return tuple(complete), problems


def _listed(raw: object) -> list[tuple[str, object]] | None:
    if not isinstance(raw, list | tuple):
        return [] if raw is None else None
    return [(f"jobParameters[{i}]", item) for i, item in enumerate(raw)]


def _logs(raw: object) -> list[tuple[str, object]] | None:
    if raw is None or isinstance(raw, Mapping):
        return [("log", raw)] if raw else []
    return [(f"log[{i}]", item) for i, item in enumerate(raw)] if isinstance(raw, list | tuple) else None


def _merge_log(raw: object) -> list[tuple[str, object]] | None:
    return [(MERGE_LOG, raw)] if isinstance(raw, Mapping) and raw else [] if not raw else None


def _item(path: str, raw: object, own: str, in_log: bool) -> tuple[Item | None, list[Problem]]:
    if not isinstance(raw, Mapping):
        return None, [problem(path, "type", f"expected an object, found {found(raw)}")]
    problems: list[Problem] = []
    kind = _kind(path, raw, in_log, problems)
    if kind is None:
        return None, [*problems, *_unknown(path, raw)]
    names = _datasets(f"{path}.dataset", kind, raw.get("dataset"), own, problems)
    if kind == "input" and names and (raw.get("pseudo") or all(name in PSEUDO_NAMES for name in names)):
        kind = "pseudo_input"
    if kind == "input" and any(name in PSEUDO_NAMES for name in names):
        problems.append(problem(f"{path}.dataset", "contradiction", "a numbered sequence and datasets cannot stand in one item"))
    misplaced = [key for key in raw if key in KEYS and key not in MODELS[kind].model_fields]
    for key in misplaced:
        if key != "param_type" and KEYS[key].asks(raw[key]):
            types = " or ".join(of for of, model in MODELS.items() if key in model.model_fields)
            problems.append(problem(f"{path}.{key}", "contradiction", f"{key} belongs to an item of the type {types}"))
    known = {key: value for key, value in raw.items() if key not in misplaced}
    if kind != "constant":
        known["param_type"] = kind
    document, wrong = read(MODELS[kind], known, f"{path}.", "key of an item")
    keys = dict(document)
    stream, file_name = _text(f"{path}.value", kind, document.value, problems)
    attributes, more = (
        input_attributes(path, {key: keys[key] for key in document.model_fields_set}) if kind == "input" else ("", [])
    )
    item = Item(
        path=path,
        type=kind,
        value=document.value,
        names=names,
        stream=stream,
        file_name=file_name,
        container=document.container,
        token=document.token,
        offset=keys.get("offset", 0),
        hidden=document.hidden,
        padding=document.padding,
        optional=keys.get("allowNoOutput", False),
        on_command_line=not in_log,
        attributes=attributes,
        n_records=keys.get("num_records") or None,
        source_name=keys.get("sourceName", ""),
        destination=keys.get("destination", ""),
        transient=keys.get("transient", False),
        merge_only=path == MERGE_LOG or keys.get("mergeOnly", False),
        files=keys.get("files", ()),
    )
    if len(item.files) > MOST_FILES:
        problems.append(problem(f"{path}.files", "range", f"{len(item.files)} files, at most {MOST_FILES} in one item"))
    return item, [*problems, *wrong, *more]


def _unknown(path: str, raw: Mapping[str, object]) -> Iterator[Problem]:
    """Keys that no item has: one of them may be the type, misspelt."""
    for key in islice((key for key in raw if key not in KEYS), MOST_HINTS):
        near = nearest(key, KEYS)
        yield problem(
            f"{path}.{key[:100]}", "unknown", "unknown key of an item" + (f"; the nearest known one is {near}" if near else "")
        )


def _kind(path: str, raw: Mapping[str, object], in_log: bool, problems: list[Problem]) -> ItemType | None:
    """The type of the item, or None when it cannot be told."""
    types = ("template",) if in_log else ("constant", "template")
    if raw.get("type") not in types:
        if raw.get("type") is None:
            problems.append(problem(f"{path}.type", "required", "an item is of the type constant or template"))
        else:
            message = f"expected {' or '.join(types)}, found {found(raw['type'])}"
            problems.append(problem(f"{path}.type", "choice", message))
        return None
    if raw["type"] == "constant":
        return "constant"
    stands_for = raw.get("param_type")
    kinds = [kind for kind in MODELS if kind == "log" or (not in_log and kind != "constant")]
    if stands_for is None:
        problems.append(problem(f"{path}.param_type", "required", "a template says what it stands for"))
    elif stands_for not in kinds:
        ours = str(stands_for).startswith(("random_seed", "pp_input", "in_constituent", "trn_", "tmpl_"))
        message = f"expected one of {', '.join(kinds)}; found {found(stands_for)}{' (made by the system itself)' if ours else ''}"
        problems.append(problem(f"{path}.param_type", "choice", message))
    return next((kind for kind in kinds if kind == stands_for), None)


def _datasets(field: str, kind: ItemType, text: object, own: str, problems: list[Problem]) -> tuple[str, ...]:
    """The good names in the text, without `own`, the scope that the VO's datasets have anyway (decision F8)."""
    if kind in ("constant", "number") or not isinstance(text, str) or not text.strip():
        return ()
    split = text.split(",") if kind == "input" else (text,)
    names = tuple(dict.fromkeys(name.strip().removeprefix(own) for name in split))
    if len(names) > MOST_ITEMS:
        problems.append(problem(field, "range", f"{len(names)} datasets, at most {MOST_ITEMS} in one item"))
        return ()
    wrong = {name: fault for name in names if (fault := _bad_name(kind, name))}
    problems += [problem(field, *fault) for fault in islice(wrong.values(), MOST_PROBLEMS)]
    return tuple(name for name in names if name not in wrong)


def _bad_name(kind: ItemType, name: str) -> tuple[str, str] | None:
    if kind == "pseudo_input" and name not in PSEUDO_NAMES:
        return "choice", f"expected {' or '.join(PSEUDO_NAMES)}, found {found(name)}"
    if name == "DBR_LATEST":
        return "not_supported_yet", "DBR_LATEST is not supported yet"
    if len(name) > DATASET["dataset_name"]:
        return "length", f"{len(name)} characters, the limit of a dataset name is {DATASET['dataset_name']}"
    if len(name) < 2 or not re.fullmatch(documents.DATASET_NAME, name):
        return "format", f"{found(name)} is not a dataset name: letters, digits and . _ : / - , a letter or digit first"
    return None


def _text(field: str, kind: ItemType, text: str, problems: list[Problem]) -> tuple[str, str]:
    """The stream of an input and the file-name template of an output, from the item's text."""
    if kind in OUTPUT_TYPES:
        return "", _file_name(field, text, problems) if text else ""
    try:
        marks = placeholders(text)
    except MalformedText as wrong:
        problems.append(problem(field, "template", str(wrong)))
        return "", ""
    if kind not in MASTER_TYPES:
        return "", ""
    names = [n for mark in marks for n in mark.names if n not in (*NUMBERS, TASK_ID, MIDDLE_NAME, SOURCE_URL)]
    stream = names[0] if names else ""
    if len(stream) > DATASET["stream_name"]:
        problems.append(problem(field, "length", f"the limit of a stream name is {DATASET['stream_name']} characters"))
    return stream, ""


def _file_name(field: str, text: str, problems: list[Problem]) -> str:
    name = text.rsplit("=", 1)[-1].strip()
    limit = min(TEMPLATE["filename_template"], DATASET["lfn"])
    if len(name) > limit:
        problems.append(problem(field, "length", f"the limit of a file name is {limit} characters"))
        return ""
    try:
        template = compiled_name(name)
    except MalformedText as wrong:
        problems.append(problem(field, "template", str(wrong)))
        return ""
    longest = template.name(*LARGEST_NUMBERS, "x")  # what a middle name does to it is seen with the names of the input
    if not re.fullmatch(FILE_NAME, longest):
        problems.append(
            problem(
                field,
                "template",
                f"the file name, the text behind the last '=', is {found(name)}: only letters, digits and . _ + - are allowed",
            )
        )
        return ""
    if len(longest) > limit:
        problems.append(problem(field, "length", f"the limit of a file name is {limit} characters"))
        return ""
    return name


def command_line(items: Sequence[Item], stream_of: Mapping[str, str]) -> str:
    """All visible texts in order, joined by blanks; `stream_of` maps the path of an output to its placeholder's name."""
    text = ""
    for item in items:
        if item.hidden or item.merge_only or not item.on_command_line:
            continue
        value = item.value
        if item.type in OUTPUT_TYPES:
            head, equals, _ = value.rpartition("=")
            value = f"{head}{equals}${{{stream_of[item.path]}}}"
        text += value + (" " if item.padding else "")
    return text.strip()
