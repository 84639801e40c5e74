"""Reading the items of jobParameters and log: their keys, their datasets, their placeholders.

Here: one item by itself. Not here: rules over several items (`templates`) or with other parameters (`contradictions`).
Source: facts on task parameters 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from workqueues.rules.jobs.job_parameters import compiled_name
from workqueues.rules.jobs.lengths import DATASET, FILE_NAME, LARGEST_NUMBERS, TEMPLATE
from workqueues.rules.jobs.placeholders import MIDDLE_NAME, NUMBERS, TASK_ID, MalformedText, placeholders
from workqueues.rules.refine.attributes import WISHES, input_attributes
from workqueues.rules.refine.types import Item
from workqueues.rules.task_parameters import Parameter, found, problem, read
from workqueues.states import MASTER_TYPES, OUTPUT_TYPES

PSEUDO_NAMES = ("seq_number", "pseudo_dataset")
"""Dataset names that stand for numbered records, not for files."""

_DATASET = r"[A-Za-z0-9][A-Za-z0-9._:/-]*"
MOST_PROBLEMS = 200
"""Problems after which further items are not looked at: a body that is wrong throughout must not cost seconds."""
MOST_ITEMS = 1000
MOST_CHARACTERS = 20_000
"""Most items in one list, and most characters in the text of one."""
_MADE_BY_US = ("random_seed", "pp_input", "in_constituent")


def _flag(name: str, doc: str, row: str = "", default: bool = False) -> Parameter:
    return Parameter(name, "flag", doc, row, default=default)


KEYS: Mapping[str, Parameter] = {
    p.name: p
    for p in (
        Parameter("type", "text", "constant or template.", choices=("constant", "template")),
        Parameter("param_type", "text", "What a template stands for."),
        Parameter("value", "text", "Text with placeholders.", length=MOST_CHARACTERS),
        Parameter("dataset", "text", "Name of the dataset; input: also a comma list."),
        Parameter("container", "text", "Container of the dataset.", length=DATASET["container_name"], pattern=_DATASET),
        Parameter("token", "text", "Storage token.", length=DATASET["storage_token"]),
        Parameter("offset", "int", "Serials, seeds, records begin at 1 + offset.", high=2_000_000_000),
        _flag("hidden", "The value is not on the command line."),
        _flag("padding", "A blank follows the value.", default=True),
        _flag("allowNoOutput", "A missing output is no error."),
        Parameter("destination", "text", "Where the output goes in the end.", row="J7"),
        _flag("expand", "The datasets in the container are the inputs.", "J26"),
        Parameter("consolidate", "text", "New container for the comma list.", row="J26"),
        Parameter("files", "any", "Only these files.", row="J23"),
        Parameter("include", "text", "Only files whose names match.", row="J26"),
        Parameter("exclude", "text", "No files whose names match.", row="J26"),
        Parameter("attributes", "text", "repeat, nosplit, manytime, cvmfs, ratio=2, ...", length=200),
        Parameter("ratio", "number", "Files for each file of the master.", low=1e-6, high=10**6, default=1),
        Parameter("eventRatio", "number", "Events for each event of the master.", low=1e-6, high=10**6),
        Parameter("nFilesPerJob", "int", "Files a job.", low=1, high=10_000),
        Parameter("num_records", "int", "Length of a sequence.", low=1, high=1_000_000),
        Parameter("sourceName", "text", "Name that the payload writes.", length=TEMPLATE["source_name"], pattern=FILE_NAME),
        Parameter("transient", "any", "Output is not kept.", row="J18"),
        _flag("random", "Files in random order."),
        _flag("reusable", "Files are used again when too few are left, not tracked."),
        _flag("usedup", "Duplicates are kept; the catalogue has none in a dataset."),
        _flag("check", "The dataset is checked for consistency.", "J9"),
        _flag("indexConsistent", "Files whose number no partner dataset has are left out."),
        _flag("mergeOnly", "Output of merge jobs only.", "J8"),
        _flag("pseudo", "Numbered records, no files, as for seq_number."),
        _flag("es_only", "Only on the command line of event-service jobs.", "J13"),
    )
}

_BELONG: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("attributes", *WISHES), ("input",)),
    "offset": ("number", "pseudo_input", *OUTPUT_TYPES),
    "allowNoOutput": OUTPUT_TYPES,
    "num_records": ("pseudo_input",),
    "pseudo": MASTER_TYPES,
    "sourceName": ("output",),
}
"""Keys that only items of these types may have."""


def read_items(params: Mapping[str, object]) -> tuple[tuple[Item, ...], list[Problem]]:
    """All items that can be read, in order, those of `log` last, and what is wrong with the others."""
    items: list[Item] = []
    problems: list[Problem] = []
    for field, several in (("jobParameters", _listed(params.get("jobParameters"))), ("log", _logs(params.get("log")))):
        if several is None:
            wanted = "a list of items" if field == "jobParameters" else "an item or a list of items"
            problems.append(problem(field, "type", f"expected {wanted}, found {found(params.get(field))}"))
            continue
        if len(several) > MOST_ITEMS:
            problems.append(problem(field, "range", f"{len(several)} items, at most {MOST_ITEMS}"))
        for path, raw in several[:MOST_ITEMS]:
            if len(problems) >= MOST_PROBLEMS:
                problems.append(problem(path, "more", "further items were not looked at"))
                break
            item, wrong = _item(path, raw, in_log=field == "log")
            problems += wrong
            if item is not None:
                items.append(item)
    return _with_streams(items), problems


def _with_streams(items: Sequence[Item]) -> tuple[Item, ...]:
    """Inputs without a placeholder get a stream: SEQNUMBER, that of the same dataset before, or IN, IN2, ... by their place."""
    streams: dict[str, str] = {}
    found, n = [], 0
    for item in items:
        stream = item.stream
        if item.type == "input":
            n += 1
            known = streams.get(item.names[0], "") if item.names else ""
            stream = stream or known or ("IN" if n == 1 else f"IN{n}")
            streams |= {name: stream for name in item.names if name not in streams}
        elif item.type == "pseudo_input":
            stream = stream or "SEQNUMBER"
        found.append(replace(item, stream=stream))
    return tuple(found)


def _listed(raw: object) -> list[tuple[str, object]] | None:
    if not isinstance(raw, list | tuple):
        return [] if raw is None else None
    return [(f"jobParameters[{i}]", item) for i, item in enumerate(raw)]


def _logs(raw: object) -> list[tuple[str, object]] | None:
    if raw is None or isinstance(raw, Mapping):
        return [("log", raw)] if raw else []
    return [(f"log[{i}]", item) for i, item in enumerate(raw)] if isinstance(raw, list | tuple) else None


def _item(path: str, raw: object, in_log: bool) -> tuple[Item | None, list[Problem]]:
    if not isinstance(raw, Mapping):
        return None, [problem(path, "type", f"expected an object, found {found(raw)}")]
    values, problems = _keys(path, raw)
    kind = _kind(path, raw, values, in_log, problems)
    value = values.get("value")
    if "value" not in raw and kind in ("constant", *OUTPUT_TYPES, "number", ""):
        problems.append(problem(f"{path}.value", "required", "an item needs its text"))
    text = value if isinstance(value, str) else ""
    if not kind:
        return None, problems
    names = _datasets(path, kind, values, problems)
    stream, file_name = _text(f"{path}.value", kind, text, problems)
    if kind == "input" and names and (values.get("pseudo") or all(n in PSEUDO_NAMES for n in names)):
        kind = "pseudo_input"
    problems += _misplaced(path, kind, names, values)
    attributes, wrong = input_attributes(path, values) if kind == "input" else ("", [])
    problems += wrong
    offset, n_records = values.get("offset"), values.get("num_records")
    item = Item(
        path=path,
        type=kind,  # type: ignore[arg-type]
        value=text,
        names=names,
        stream=stream,
        file_name=file_name,
        container=str(values.get("container") or ""),
        token=str(values.get("token") or ""),
        offset=offset if isinstance(offset, int) else 0,
        hidden=bool(values.get("hidden")),
        padding=values.get("padding") is not False,
        optional=bool(values.get("allowNoOutput")),
        on_command_line=not in_log,
        attributes=attributes,
        n_records=n_records if isinstance(n_records, int) else None,
        source_name=str(values.get("sourceName") or ""),
    )
    return item, problems


def _misplaced(path: str, kind: str, names: Sequence[str], values: Mapping[str, object]) -> Iterator[Problem]:
    """Keys that mean nothing for this type of item, and a sequence among datasets."""
    for key, types in _BELONG.items():
        if kind not in types and key in values and KEYS[key].asks(values[key]):
            yield problem(f"{path}.{key}", "contradiction", f"{key} belongs to an item of the type {' or '.join(types)}")
    if kind == "input" and any(name in PSEUDO_NAMES for name in names):
        yield problem(f"{path}.dataset", "contradiction", "a numbered sequence and datasets cannot stand in one item")


def _keys(path: str, raw: Mapping[str, object]) -> tuple[dict[str, object], list[Problem]]:
    values: dict[str, object] = {}
    problems: list[Problem] = []
    for key, value in raw.items():
        known = KEYS.get(key)
        if known is None:
            near = nearest(str(key), KEYS) if len(problems) < 20 else ""
            hint = f"; the nearest known one is {near}" if near else ""
            problems.append(problem(f"{path}.{str(key)[:60]}", "unknown", f"unknown key of an item{hint}"))
            continue
        values[key], rule, message = read(known, value)
        if rule == "range" and key in ("ratio", "eventRatio"):
            message = f"must be above 0 and at most a million, found {found(value)}"
        if rule:
            problems.append(problem(f"{path}.{key}", rule, message))
        if known.row and known.asks(value):
            problems.append(problem(f"{path}.{key}", "not_supported_yet", f"not supported yet (row {known.row})"))
    return values, problems


def _kind(path: str, raw: Mapping[str, object], values: Mapping[str, object], in_log: bool, problems: list[Problem]) -> str:
    """The type of the item, or empty when it cannot be told."""
    if raw.get("type") is None:
        problems.append(problem(f"{path}.type", "required", "an item is of the type constant or template"))
        return ""
    if values.get("type") == "constant":
        if in_log:
            problems.append(problem(f"{path}.type", "choice", "a log is a template"))
        return "" if in_log else "constant"
    if values.get("type") != "template":
        return ""
    kind = values.get("param_type")
    if kind is None:
        if raw.get("param_type") is None:
            problems.append(problem(f"{path}.param_type", "required", "a template says what it stands for"))
        return ""
    allowed = ("log",) if in_log else (*MASTER_TYPES, "number", *OUTPUT_TYPES)
    if kind in allowed:
        return str(kind)
    why = " (made by the system itself)" if kind in _MADE_BY_US or str(kind).startswith(("trn_", "tmpl_")) else ""
    problems.append(problem(f"{path}.param_type", "choice", f"expected one of {', '.join(allowed)}; found {found(kind)}{why}"))
    return ""


def _datasets(path: str, kind: str, values: Mapping[str, object], problems: list[Problem]) -> tuple[str, ...]:
    field = f"{path}.dataset"
    raw = values.get("dataset")
    if kind in ("constant", "number"):
        if raw:
            problems.append(problem(field, "contradiction", f"an item of the type {kind} has no dataset"))
        return ()
    if not isinstance(raw, str) or not raw.strip():
        problems.append(problem(field, "required", f"an item of the type {kind} names its dataset"))
        return ()
    names = tuple(dict.fromkeys(n.strip() for n in raw.split(","))) if kind == "input" else (raw.strip(),)
    if len(names) > 1000:
        problems.append(problem(field, "range", f"{len(names)} datasets, at most 1000 in one item"))
    good = []
    for name in names:
        wrong = _bad_name(kind, name)
        if wrong:
            problems.append(problem(field, *wrong))
        else:
            good.append(name)
    return tuple(good)


def _bad_name(kind: str, name: str) -> tuple[str, str] | None:
    if kind == "pseudo_input" and name not in PSEUDO_NAMES:
        return "choice", f"expected {' or '.join(PSEUDO_NAMES)}, found {found(name)}"
    if name == "DBR_LATEST":
        return "not_supported_yet", "DBR_LATEST is not supported yet (row J26)"
    if len(name) > DATASET["dataset_name"]:
        return "length", f"{len(name)} characters, the limit of a dataset name is {DATASET['dataset_name']}"
    if len(name) < 2 or not re.fullmatch(_DATASET, name):
        return "format", f"{found(name)} is not a dataset name: letters, digits and . _ : / - , a letter or digit first"
    return None


def _text(field: str, kind: str, text: str, problems: list[Problem]) -> tuple[str, str]:
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
    names = [n for mark in marks for n in mark.names if n not in (*NUMBERS, TASK_ID, MIDDLE_NAME)]
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
        if item.hidden or not item.on_command_line:
            continue
        value = item.value
        if item.type in OUTPUT_TYPES:
            head, equals, _ = value.rpartition("=")
            value = f"{head}{equals}${{{stream_of[item.path]}}}"
        text += value + (" " if item.padding else "")
    return text.strip()
