"""What a task says of merging its outputs: whether it goes together, and whether its merge jobs could be made.

Source: facts on task parameters 2.1 (Merging), 2.2 (mergeSpec), on workflows 7.1; row J8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from broker_site.foundation.outside_data import found
from workqueues.rules.jobs.job_parameters import ParametersTemplate, compiled_name
from workqueues.rules.jobs.lengths import DATASET, LARGEST_NUMBERS, TASK, TEMPLATE
from workqueues.rules.jobs.merge_parameters import merge_template, merged_streams
from workqueues.rules.jobs.placeholders import NUMBERS, TASK_ID, MalformedText
from workqueues.rules.jobs.premerged import LONGER_DATASET, LONGER_FILE, MERGE_LOG_STREAM, stream_name
from workqueues.rules.jobs.sandbox import source_filled
from workqueues.rules.refine.items import MERGE_LOG
from workqueues.rules.refine.types import Item
from workqueues.rules.task_parameters import TaskParameters
from workqueues.states import OUTPUT_TYPES

Faults = Iterator[tuple[str, str, str]]
KEYS: Mapping[str, type] = {"transPath": str, "jobParameters": str, "useLocalIO": int}
OF_MERGING = (
    "mergeSpec", "umNameAtEnd", "nFilesPerMergeJob", "nEventsPerMergeJob", "nGBPerMergeJob", "nMaxFilesPerMergeJob",
    "mergeCoreCount", "mergeRamCount",
)  # fmt: skip
NOT_WITH = ("addNthFieldToLFN", "instantiateTmpl", "instantiateTmplSite")
"""Names of outputs that one job of many inputs cannot have yet."""


def check_merging(task: TaskParameters, items: Sequence[Item], streams: Mapping[str, str]) -> Faults:
    """All that is wrong; `streams`: path of each output to its stream."""
    if not task.mergeOutput:
        for name in OF_MERGING:
            if getattr(task, name):
                yield name, "contradiction", f"{name} is about merging outputs, and mergeOutput is not set"
        for item in items:
            if item.merge_only:
                yield item.path, "contradiction", "only merge jobs would write it, and mergeOutput is not set"
        return
    for name in NOT_WITH:
        if getattr(task, name):
            yield name, "not_supported_yet", f"{name} together with mergeOutput is not supported yet"
    written = [item for item in items if item.type in OUTPUT_TYPES]
    if not any(item.type == "output" and not item.merge_only for item in written):
        yield "mergeOutput", "contradiction", "the task has no output that could be merged"
    for item in written:
        if not item.merge_only:
            yield from _lengths(item)
        elif item.type == "log" and item.path != MERGE_LOG:
            yield f"{item.path}.mergeOnly", "contradiction", f"the log of merge jobs is given as {MERGE_LOG}"
    yield from _spec(task, written, streams)


def _lengths(item: Item) -> Faults:
    for name in item.names:
        if len(name) + LONGER_DATASET > DATASET["dataset_name"]:
            yield f"{item.path}.dataset", "length", f"with mergeOutput a dataset name has {LONGER_DATASET} characters less"
    longest = len(compiled_name(item.file_name).name(*LARGEST_NUMBERS, "x")) if item.file_name else 0
    if max(longest, len(item.file_name)) + LONGER_FILE > min(TEMPLATE["filename_template"], DATASET["lfn"]):
        yield f"{item.path}.value", "length", f"with mergeOutput a file name has {LONGER_FILE} characters less"


def _spec(task: TaskParameters, written: Sequence[Item], streams: Mapping[str, str]) -> Faults:
    spec = task.mergeSpec or {}
    for key, value in spec.items():
        if key not in KEYS:
            yield f"mergeSpec.{key[:100]}", "unknown", f"unknown key of mergeSpec; it has {', '.join(KEYS)}"
        elif not isinstance(value, KEYS[key] | None):
            yield (
                f"mergeSpec.{key}",
                "type",
                f"expected {'a text' if KEYS[key] is str else 'true or false'}, found {found(value)}",
            )
    path, text = spec.get("transPath") or "", spec.get("jobParameters") or ""
    if isinstance(path, str) and path:
        if path.startswith("/") or ".." in path.split("/"):
            yield "mergeSpec.transPath", "format", "expected a path below the software area, without '..'"
        if len(path) > TASK["trans_path"]:
            yield "mergeSpec.transPath", "length", f"{len(path)} characters, the limit is {TASK['trans_path']}"
        if not text:
            yield "mergeSpec.jobParameters", "required", "a transformation of the task's own needs its parameters"
    if isinstance(text, str) and text:
        yield from _parameters(source_filled(text, task.sourceURL), written, streams)
    elif own := [item for item in written if item.merge_only and item.type == "output" and not item.optional]:
        yield f"{own[0].path}.mergeOnly", "contradiction", "nothing would write it: give mergeSpec with jobParameters that do"


def _parameters(text: str, written: Sequence[Item], streams: Mapping[str, str]) -> Faults:
    field, every = "mergeSpec.jobParameters", [streams[item.path] for item in written]
    optional = [streams[item.path] for item in written if item.optional]
    try:
        names = ParametersTemplate(merge_template(text, every)).names
        without = ParametersTemplate(merge_template(text, every, optional)).names
    except MalformedText as wrong:
        yield field, "template", str(wrong)
        return
    merged = [streams[item.path] for item in written if not item.merge_only]
    known = {*every, *map(stream_name, merged), *NUMBERS, TASK_ID} - {"RNDMSEED", "SKIPEVENTS", "FIRSTEVENT"}
    by_pilot = {MERGE_LOG_STREAM} if MERGE_LOG_STREAM in every else {streams[item.path] for item in written if item.type == "log"}
    for stream in (streams[item.path] for item in written if not item.optional):
        if stream not in names | by_pilot:
            yield field, "template", f"nothing would write {stream}: ${{{stream}}} does not stand there"
    for name in sorted(names - known):
        yield field, "template", f"unknown placeholder {name}; a merge job knows {', '.join(sorted(known))}"
    for stream in sorted(merged_streams(without) & set(optional)):
        message = (
            f"${{TRN_{stream}}} may stand for nothing, as jobs may leave that output out: use the pair ${{TRN_{stream}:{stream}}}"
        )
        yield field, "template", message
