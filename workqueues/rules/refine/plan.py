"""From accepted parameters to the rows of a task: columns, split rule, datasets, output templates, command line.

Here: what the task becomes, and what the parent and the catalogue have to say. Not here: the parameters by themselves
(`validate`), reading files into datasets (feed). Source: facts on task parameters 2, 3; facts on workflows 7.5; decision F5.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.jobs import split_rule
from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.jobs.sandbox import source_filled
from workqueues.rules.refine.contradictions import cuts_events, goal_per_mille
from workqueues.rules.refine.data_rights import NOT_READ_ANY_MORE
from workqueues.rules.refine.datasets import check_events, dataset_plans, offset_of, template_plans
from workqueues.rules.refine.division import undivided
from workqueues.rules.refine.items import command_line
from workqueues.rules.refine.prepro_spec import step_label
from workqueues.rules.refine.production import near_words
from workqueues.rules.refine.templates import input_items, output_streams, uses
from workqueues.rules.refine.types import (
    MOST_LISTED,
    DatasetFacts,
    InputWriterFacts,
    Item,
    ParentFacts,
    Refined,
    TaskDocument,
    TaskFaults,
    TaskPlan,
    TaskWait,
)
from workqueues.rules.refine.validate import bounded
from workqueues.rules.task_parameters import TASK_PARAMETERS, TaskParameters
from workqueues.states import TASK as MACHINE


def check_inputs(
    document: TaskDocument,
    parent: ParentFacts | None,
    known: Mapping[str, DatasetFacts],
    writers: Sequence[InputWriterFacts] = (),
    withheld: Collection[str] = (),
) -> list[Problem]:
    """What is wrong with the inputs themselves: those that nobody has, and those whose events are not known though they count.

    Nobody: not in the catalogue, no output of a parent, named or inferred, and the task neither waits nor allows it (decision
    F5). Those that are `withheld` may be waited for.
    """
    task = document.parameters
    written = {*(writer.dataset_name for writer in writers), *withheld}
    absent = (
        ()
        if task.waitInput or task.allowEmptyInput
        else (place for place in _absent(document, parent, known) if place[1] not in written)
    )
    problems = chain(
        check_events(document.items, task, known),
        (problem(f"{path}.dataset", "dataset", f"the catalogue has no dataset {name}") for path, name in absent),
    )
    return list(islice(problems, MOST_LISTED + 1))


def _absent(document: TaskDocument, parent: ParentFacts | None, known: Mapping[str, DatasetFacts]) -> Iterator[tuple[str, str]]:
    """Path and name of each input that neither catalogue nor parent has."""
    outputs = parent.outputs if parent else frozenset()
    for item in input_items(document.items):
        for name in item.names:
            if name not in known and name not in outputs:
                yield item.path, name


def plan(
    document: TaskDocument,
    *,
    task_id: int,
    user_name: str,
    parent: ParentFacts | None = None,
    writers: Sequence[InputWriterFacts] = (),
    known: Mapping[str, DatasetFacts],
    withheld: Collection[str] = (),
) -> Refined:
    """Refine one task. `known` has the inputs that the catalogue knows; `user_name` owns the task when the parameters do not
    say.

    TaskWait: a parent still runs (no clock), or an input is not there yet and the task waits for it. TaskFaults: a parameter is
    wrong, the named parent is unknown or ended badly, or an input does not exist. `writers`: the parents that were inferred.
    `withheld`: inputs of other VOs that exist and may not be read; only for a task that was accepted, which could read them then.
    """
    task, items = document.parameters, document.items
    if document.problems:
        return TaskFaults(document.problems)
    if (stop := _parent(task, parent) or (None if task.noWaitParent else _live_writer(writers))) is not None:
        return stop
    if problems := check_inputs(document, parent, known, writers, withheld):
        return TaskFaults(bounded(problems))
    if task.noWaitParent and (unopened := _unopened(document, parent, writers, known)):
        return unopened
    if task.waitInput or writers:
        absent = dict.fromkeys(name for _, name in _absent(document, parent, known))
        if gone := [writer for writer in writers if writer.dataset_name in absent]:
            return TaskWait(f"waiting for the input {gone[0].dataset_name}: {ended_writer(gone[0])}", clock=True)
        if task.waitInput and absent:
            return TaskWait(f"waiting for the input {', '.join(islice(absent, 3))}", clock=True)
    if withheld and not task.allowEmptyInput:
        closed = next((name for _, name in _absent(document, parent, known) if name in withheld), "")
        if closed:
            return TaskWait(f"waiting for the input {closed}, {NOT_READ_ANY_MORE}", clock=True)
    rule = _split_rule(items, task)
    if len(rule) > TASK["split_rule"]:
        return TaskFaults((problem("", "length", f"split rule of {len(rule)} characters, the limit is {TASK['split_rule']}"),))
    streams = output_streams(items)
    datasets = dataset_plans(items, task, known)
    divided = next(undivided(task, items), None) is None
    return TaskPlan(
        columns=_columns(task, task_id, user_name, parent, rule),
        divided=divided,
        datasets=datasets,
        templates=template_plans(items, streams, datasets),
        job_parameters=planned_parameters(document),
        max_attempt=1 if task.disableAutoRetry else task.maxAttempt,
        max_failure=task.maxFailure or None,
        shares_outputs=task.allowTaskDuplication,
        continues=task.oldDatasetName,
        skips_used_by=task.skipFilesUsedBy,
        newer_attempts=task.useInFilesWithNewAttemptNr,
        notes=notes(document),
    )


def planned_parameters(document: TaskDocument) -> str:
    """The command line of the jobs, with placeholders for what differs from job to job."""
    return source_filled(command_line(document.items, output_streams(document.items)), document.parameters.sourceURL)


def planned_columns(document: TaskDocument) -> dict[str, object]:
    """The columns that the parameters alone give to a task, its split rule among them."""
    task = document.parameters
    return _columns(task, 0, "", None, _split_rule(document.items, task))


def _parent(task: TaskParameters, parent: ParentFacts | None) -> TaskWait | TaskFaults | None:
    name = task.parentTaskName
    if not name:
        return None
    if parent is None:
        return TaskFaults((problem("parentTaskName", "parent", f"no task of this name: {name}"),))
    if parent.status in MACHINE.corrupted:
        return TaskFaults((problem("parentTaskName", "parent", f"the parent, task {parent.task_id}, is {parent.status}"),))
    if parent.status not in MACHINE.completed and not task.noWaitParent:
        return TaskWait(f"waiting for the parent, task {parent.task_id}, which is {parent.status}", clock=False)
    return None


def _live_writer(writers: Sequence[InputWriterFacts]) -> TaskWait | None:
    live = next((writer for writer in writers if writer.status not in MACHINE.final), None)
    if live is None:
        return None
    return TaskWait(
        f"waiting for task {live.task_id}, which writes the input {live.dataset_name} and is {live.status}", clock=False
    )


def _unopened(
    document: TaskDocument,
    parent: ParentFacts | None,
    writers: Sequence[InputWriterFacts],
    known: Mapping[str, DatasetFacts],
) -> TaskWait | None:
    """The wait for the first input that a live parent has not opened in the catalogue yet."""
    written = being_written(parent, writers)
    first = next((name for item in input_items(document.items) for name in item.names if name in written.keys() - known), "")
    return TaskWait(f"waiting for the input {first}, which task {written[first]} opens", clock=False) if first else None


def being_written(parent: ParentFacts | None, writers: Sequence[InputWriterFacts]) -> dict[str, int]:
    """The datasets to which a parent that has not ended may still write, with its number."""
    written = {writer.dataset_name: writer.task_id for writer in writers if writer.status not in MACHINE.final}
    if parent is not None and parent.status not in MACHINE.final:
        written |= dict.fromkeys(parent.outputs, parent.task_id)
    return written


def ended_writer(writer: InputWriterFacts) -> str:
    """What became of an inferred parent that did not write what the task reads."""
    return f"task {writer.task_id}, which was to write it, is {writer.status}"


def _split_rule(items: Sequence[Item], task: TaskParameters) -> str:
    """Codes of what the task sets; nEventsPerJob of whole input files becomes files a job."""
    codes: dict[str, int | str] = {}
    for name, parameter in TASK_PARAMETERS.items():
        value = getattr(task, name)
        if parameter.code and parameter.supported and parameter.code not in ("LS", "US", split_rule.STEP) and value:
            codes[parameter.code] = int(value)
    per_job, per_file = task.nEventsPerJob, task.nEventsPerInputFile
    if per_job and per_file and not task.noInput and not cuts_events(task):
        codes["NF"] = min(per_job // per_file, task.nFilesPerJob or per_job)
        del codes["NE"]
    codes |= _worded(task)
    if task.useFileAsSourceLFN:
        codes["GB"] = 1  # the feeder makes a boundary of each name
    if fields := task.addNthFieldToLFN:
        codes["AN"] = ",".join(map(str, fields))
    if sites := bool(task.includedSite) + 2 * bool(task.excludedSite):
        codes["LS"] = sites
    if any(uses(item.value, "RNDMSEED") for item in items):
        codes["RS"] = offset_of(items, "RNDMSEED")
    if first := offset_of(items, "FIRSTEVENT"):
        codes["FT"] = first
    if task.lostFiles:  # each job is as one of the old task was, whatever limits made that
        codes = {code: value for code, value in codes.items() if code not in split_rule.SIZES}
        codes |= {"RV": 1} if task.noInput else {"RV": 1, "GB": 4}
    if task.preproSpec:
        codes[split_rule.STEP] = split_rule.FILLED_IN
    codes["US"] = split_rule.NO_SCOUTS if task.skipScout else split_rule.SCOUTS_FIRST
    return split_rule.written(codes)


def _worded(task: TaskParameters) -> dict[str, int]:
    """Codes of parameters whose values are words (facts on task parameters 3.2)."""
    codes = {}
    if word := task.allowInputLAN:
        codes["IL"] = {"use": 1, "only": 2}[word]
    kind, _, stack = task.ipConnectivity.partition("#")
    if kind:
        codes["IP"] = {"full": 1, "http": 2}[kind]
    if stack:
        codes["IK"] = int(stack.removeprefix("IPv"))
    return codes


def _columns(task: TaskParameters, task_id: int, user_name: str, parent: ParentFacts | None, rule: str) -> dict[str, object]:
    columns = {
        parameter.column: getattr(task, name)
        for name, parameter in TASK_PARAMETERS.items()
        if parameter.column and (name in task.model_fields_set or parameter.default)
    }
    columns["current_priority"] = task.taskPriority if task.currentPriority is None else task.currentPriority
    columns["req_id"] = task_id if task.reqID is None else task.reqID
    return columns | {
        "user_name": task.userName or user_name,
        "task_type": task.taskType or "anal",
        "task_priority": task.taskPriority,
        "ram_count": task.ramCount,
        "ram_unit": task.ramUnit or task.ramCountUnit or "MB",
        "base_ram_count": task.baseRamCount,
        "parent_tid": parent.task_id if parent and task.parentTaskName else task_id,
        "goal": goal_per_mille(task),
        "split_rule": rule,
        **({"architecture": json.dumps(task.architecture)} if isinstance(task.architecture, dict) else {}),
    }


def notes(document: TaskDocument) -> tuple[Problem, ...]:
    """What the submitter should know of accepted parameters: words without a meaning here, and what is said twice."""
    task = document.parameters
    listed = list(near_words(task))
    if task.disableAutoRetry and "maxAttempt" in task.model_fields_set and task.maxAttempt > 1:
        listed.append(problem("maxAttempt", "note", "disableAutoRetry is set: each file is tried once"))
    if task.preproSpec and step_label(task.preproSpec) not in ("", task.prodSourceLabel):
        listed.append(problem("preproSpec.prodSourceLabel", "note", "the job of the step has the label of its task"))
    return tuple(listed)
