"""When a task is through, and how it ends. Source: facts on timeouts and endings 5.1, 5.2 (decision tables); decisions D15, E1.

Here: the decisions. Not here: what happens to its datasets and children then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from workqueues.rules.jobs.activity import Activity
from workqueues.states import INPUT_DATASET, MASTER_TYPES, TASK


@dataclass(frozen=True, slots=True)
class DatasetCounts:
    """The counters of one dataset of a task.

    `n_files`: what the task wants of the dataset, lost files included; `n_files_missing`: those that are lost or damaged, which
    are not `n_files_to_be_used`. `mutable`: files may still come and are looked for. `excluded`: no longer an input of the task.
    Counters: facts on datasets 1.2.4.
    """

    type: str
    status: str
    master: bool = True
    n_files: int = 0
    n_files_to_be_used: int = 0
    n_files_used: int = 0
    n_files_finished: int = 0
    n_files_failed: int = 0
    n_files_missing: int = 0
    n_events: int = 0
    n_events_used: int = 0
    mutable: bool = False
    excluded: bool = False


class Readiness(NamedTuple):
    """`target`: the state the task goes to, None to wait; `reason` in words."""

    target: Literal["prepared", "defined", "registered", "scouted"] | None
    reason: str


class Ending(NamedTuple):
    """The state a task ends in (or `exhausted`), and why."""

    status: Literal["done", "finished", "failed", "broken", "aborted", "exhausted"]
    reason: str


def masters(datasets: Iterable[DatasetCounts]) -> list[DatasetCounts]:
    """The datasets whose files decide: master inputs that are not excluded."""
    return [d for d in datasets if d.master and d.type in MASTER_TYPES and not d.excluded]


def is_through(dataset: DatasetCounts) -> bool:
    """Whether no file of the dataset is left to be used or under way."""
    if dataset.status in INPUT_DATASET.final or dataset.excluded:
        return True
    settled = dataset.n_files_finished + dataset.n_files_failed
    untouched = dataset.n_files_used == 0 < dataset.n_files_to_be_used
    return dataset.n_files_to_be_used <= settled and not untouched


def ready_to_finish(status: str, datasets: Sequence[DatasetCounts]) -> Readiness:
    """Whether a task in `status` has nothing left to do with its inputs, and where it goes then; the caller knows that it is
    unlocked.
    """
    if status not in TASK.judged:
        return Readiness(None, f"a task that is {status} is not judged")
    inputs = masters(datasets)
    if not inputs:
        return Readiness(None, "it has no input dataset yet")
    if waiting := [d for d in inputs if not is_through(d)]:
        open_files = sum(max(0, d.n_files_to_be_used - d.n_files_finished - d.n_files_failed) for d in waiting)
        return Readiness(None, f"{open_files} files are not finished or given up")
    if status == "scouting":
        return Readiness("scouted", "all scouts have ended")
    if any(d.mutable for d in inputs):
        return Readiness("defined", "all known files are through; more may come")
    if any(d.status == "ready" and d.n_files > d.n_files_finished + d.n_files_failed + d.n_files_missing for d in inputs):
        return Readiness(None, "some files of its inputs have not been used")
    if status == "preprocessing" and any(d.n_files == d.n_files_finished for d in inputs):
        return Readiness("registered", "the preprocessing job has finished")
    if status == "preprocessing":
        return Readiness("prepared", "the preprocessing job has used up its tries")
    return Readiness("prepared", "all files are finished, given up or lost")


def completeness(datasets: Iterable[DatasetCounts]) -> int:
    """Per mille of the master inputs that are done: by events where they are known, else by files; 0 without any."""
    inputs = masters(datasets)
    events, files = sum(d.n_events for d in inputs), sum(d.n_files for d in inputs)
    if events:
        return 1000 * sum(d.n_events_used for d in inputs) // events
    return 1000 * sum(d.n_files_finished for d in inputs) // files if files else 0


def goal_reached(goal: int | None, datasets: Sequence[DatasetCounts], *, untried_files: int, output_events: int) -> bool:
    """Whether a running or pending task has reached its goal (per mille) and may be finished softly (decision D10).

    With known input events it is judged by `output_events`, those of the first output; where nobody counted these, by the
    input that was processed. Not while files may still come, nor while `untried_files`, ready files of the masters without a
    failure, are left.
    """
    inputs = masters(datasets)
    if goal is None or not inputs or untried_files or any(d.mutable for d in inputs):
        return False
    if output_events and (events := sum(d.n_events for d in inputs)):
        return 1000 * output_events >= goal * events
    return completeness(datasets) >= goal and any(d.n_files_finished for d in inputs)


def final_status(
    status: str,
    datasets: Sequence[DatasetCounts],
    *,
    activity: Activity = "generic",
    parent: str | None = None,
    goal: int | None = None,
    use_exhausted: bool = False,
    fail_goal_unreached: bool = False,
    allow_empty_input: bool = False,
    in_step: bool = False,
) -> Ending:
    """How a task in prepared, passed, tobroken or aborting ends. `parent`: its parent's status, None without one; `goal` per
    mille; `in_step`: its preprocessing step is not over, so that no input of its own is known.

    Done is only what processed at least one file, and all that it wanted (decision D15).
    """
    if status == "tobroken":
        return Ending("broken", "it was found broken")
    if status == "aborting":
        return Ending("aborted", "it was killed")
    inputs = masters(datasets)
    if in_step:
        failed = any(d.n_files_failed for d in inputs) and status == "prepared"
        return Ending("failed", "its preprocessing job failed" if failed else "it ended before its preprocessing step was over")
    if not any(d.n_files for d in inputs):
        return _without_files(inputs, allow_empty_input)
    raw = _by_counts(inputs, parent)
    if raw.status != "finished":
        return raw
    done = completeness(datasets)
    passed = status == "passed"
    if use_exhausted and not passed:
        if activity == "production" and (goal is None or done < goal):
            return Ending("exhausted", f"{raw.reason}; {_percent(done)} done, somebody has to look")
        return raw
    if fail_goal_unreached and done < (1000 if goal is None else goal):
        return Ending("failed", f"{raw.reason}; {_percent(done)} done, the goal is {_percent(1000 if goal is None else goal)}")
    return raw


def _without_files(inputs: Sequence[DatasetCounts], allow_empty_input: bool) -> Ending:
    if not inputs or any(d.status == "defined" for d in inputs):
        return Ending("failed", "nothing was processed: it ended before its input was known")
    if allow_empty_input:
        return Ending("finished", "its input has no files, which the task allows")
    return Ending("failed", "its input has no files")


def _by_counts(inputs: Sequence[DatasetCounts], parent: str | None) -> Ending:
    files, good = sum(d.n_files for d in inputs), sum(d.n_files_finished for d in inputs)
    if files == good:
        whole = f"all {files} files were processed" if files > 1 else "its file was processed"
        if parent is None or (parent == "done" and not any(d.mutable for d in inputs)):
            return Ending("done", whole)
        return Ending("failed" if parent in TASK.corrupted else "finished", f"{whole}, but its parent is {parent}")
    rest = _rest(inputs, files - good)
    if good:
        return Ending("finished", f"{good} of {files} files {'were' if good > 1 else 'was'} processed, {rest}")
    some = f"{files} file{'s' if files > 1 else ''}"
    if events := sum(d.n_events_used for d in inputs):
        return Ending("finished", f"no file was processed whole, but {events} events of {some}; {rest}")
    return Ending("failed", f"none of {some} was processed: {rest}")


def _rest(inputs: Sequence[DatasetCounts], others: int) -> str:
    """What became of the files that were not processed whole, of which there are so many."""
    failed, lost = sum(d.n_files_failed for d in inputs), sum(d.n_files_missing for d in inputs)
    parts = (
        (failed, "was given up", "were given up"),
        (lost, "is lost or damaged", "are lost or damaged"),
        (others - failed - lost, "was not used", "were not used"),
    )
    return ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in parts if n)


def _percent(per_mille: int) -> str:
    return f"{per_mille / 10:g} %"
