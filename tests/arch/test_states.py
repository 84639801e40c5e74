"""One place moves a kind of row: whoever else writes a status is named here, with the reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.arch.source import Module, called, product, walked

WRITES = frozenset({"update", "create", "get_or_create", "update_or_create"})
ROWS = frozenset({"Task", "Dataset", "File", "EventRange", "Job", "JobInput"})
"""Models whose status a machine or an index rules."""

SETS_STATUS = re.compile(r"\bSET\s(?:(?!\bWHERE\b|\bFROM\b)[\s\S])*?(?<![\w.])status\s*=")
INSERTS_STATUS = re.compile(r"\bINSERT\s+INTO\s+\w+\s*\([^)]*(?<!\w)status\b")

_FILES = "files have no epoch: their moves lock the dataset, keep its counters, and are refused by the guard where wrong"
_COPIES = "rows between the agent and movers, which no machine rules: a claim guards them"
_PULLED = "a child's own row of an element, by which it follows its task; the element itself is the parent's"
_RANGES = "ranges have no epoch: their moves lock the file, and are refused by the guard where wrong"

MOVES = {
    ("workqueues/ledger/moves.py", "move_task"): "the move of tasks",
    ("workqueues/ledger/moves.py", "move_dataset"): "the move of datasets",
    ("brokerage/ledger/moves.py", "_MOVE"): "the move of jobs",
    ("brokerage/ledger/lease.py", "_SEND"): "the move to sent, in one statement with the choice of the job: the hot path",
    ("brokerage/ledger/submission.py", "_SUBMIT"): "the move to sent of jobs that are chosen by number, each with its pilot",
    ("brokerage/ledger/transfers/moves.py", "_MOVE"): "the move of transfers",
    ("brokerage/ledger/transfers/asking.py", "_OPEN"): "transfers are born",
    ("brokerage/ledger/transfers/local_copies.py", "_ORDER"): f"copies are born; {_COPIES}",
    ("brokerage/ledger/transfers/local_copies.py", "_CLAIM"): f"-> copying; {_COPIES}",
    ("brokerage/ledger/transfers/local_copies.py", "_END"): f"copying -> done, failed; {_COPIES}",
    ("brokerage/ledger/transfers/local_copies.py", "_PUT_BACK"): f"copying -> waiting; {_COPIES}",
    (
        "brokerage/ledger/heartbeats.py",
        "_WRITE",
    ): "the moves to starting and running, in one statement with the lease: the hot path",
    ("workqueues/ledger/submit.py", "submit"): "a task is born",
    ("workqueues/ledger/define.py", "insert_dataset"): "datasets are born",
    ("workqueues/ledger/outputs.py", "_make_concrete"): "concrete datasets are born",
    ("workqueues/ledger/feed.py", "add_files"): "input files are born, by COPY",
    ("brokerage/ledger/reservation.py", "_pick_seeds"): f"ready -> picked; {_FILES}",
    ("brokerage/ledger/generate.py", "_USE"): f"picked -> running; {_FILES}",
    ("brokerage/ledger/generate.py", "_USE_AND_BIND"): f"picked -> running; {_FILES}",
    ("brokerage/ledger/ending_jobs.py", "_USES"): "uses of files (live -> used, returned): the unique indexes rule them",
    ("workqueues/ledger/picking.py", "_PICK"): f"ready, partial -> picked; {_FILES}",
    ("workqueues/ledger/picking.py", "_PICK_DUE"): f"ready, partial -> picked; {_FILES}",
    ("workqueues/ledger/picking.py", "take_partners"): f"ready -> picked; {_FILES}",
    ("workqueues/ledger/secondaries.py", "_more_records"): "records of a sequence are born, by COPY",
    ("workqueues/ledger/picked_files.py", "_BACK"): f"picked -> ready, partial; {_FILES}",
    ("workqueues/ledger/files.py", "_SETTLE"): f"what a job's end does to its files; {_FILES}",
    ("workqueues/ledger/files.py", "_settle_input"): "of settling, which gives them to _SETTLE",
    ("workqueues/ledger/files.py", "_settle_output"): "of settling, which gives them to _SETTLE",
    ("workqueues/ledger/files.py", "_settle_cut"): "of settling, which gives them to _SETTLE",
    ("workqueues/ledger/files.py", "_settle_premerged"): "of settling, which gives them to _SETTLE",
    ("brokerage/ledger/merge_jobs.py", "_TAKE"): f"prepared -> merging; {_FILES}",
    ("brokerage/ledger/merge_jobs.py", "_merge_job"): "outputs of merge jobs are born",
    ("brokerage/ledger/merge_jobs.py", "_row"): "merge jobs are born",
    ("workqueues/ledger/files.py", "_hold"): "of settling, which gives them to _SETTLE: a file that is held is ready",
    ("workqueues/ledger/events.py", "insert_ranges"): "event ranges are born, by COPY",
    ("workqueues/ledger/events.py", "_BEGUN"): f"ready -> sent; {_RANGES}",
    ("workqueues/ledger/events.py", "_ENDED"): f"-> finished, failed, cancelled, fatal; {_RANGES}",
    ("workqueues/ledger/events.py", "_CLOSED"): f"finished -> done, failed -> fatal; {_RANGES}",
    ("workqueues/ledger/events.py", "_USE"): f"picked -> running, ready, by what is left of the events; {_FILES}",
    ("workqueues/ledger/events.py", "_FATAL"): f"ready -> fatal, of no job; {_RANGES}",
    ("workqueues/ledger/events.py", "_RELEASED"): f"picked -> ready, on the way to failed; {_FILES}",
    ("workqueues/ledger/events.py", "_DROPPED"): f"picked -> running, ready -> failed; {_FILES}",
    ("workqueues/ledger/events.py", "mark_partial"): f"ready -> partial; {_FILES}",
    ("workqueues/ledger/feed.py", "resolve_held"): f"ready -> lost, broken, and back; {_FILES}",
    ("workqueues/ledger/commands.py", "_UNUSED"): f"ready, partial -> failed; {_FILES}",
    ("workqueues/ledger/reopened_inputs.py", "_GONE"): f"lost, missing, broken -> ready, held until looked for; {_FILES}",
    ("workqueues/ledger/more_tries.py", "_REVIVED"): f"failed -> ready; {_FILES}",
    ("workqueues/ledger/more_tries.py", "_PARTIAL"): f"ready -> partial; {_FILES}",
    ("workqueues/ledger/elements/moves.py", "_MOVE"): "the move of elements",
    ("workqueues/ledger/elements/inboxes.py", "_OPEN"): "birth of an inbox, which has no machine: it follows its elements",
    ("workqueues/ledger/elements/inboxes.py", "_follow"): "an inbox follows its elements and never goes back: inbox_state",
    ("workqueues/ledger/elements/hand_over.py", "_HAND_OVER"): "the move to Negotiating, with whose it is: the hot path",
    ("workqueues/ledger/elements/files.py", "_FREE"): f"picked -> ready, of elements; {_FILES}",
    ("workqueues/ledger/elements/files.py", "_PICK_AGAIN"): f"ready -> picked, of elements; {_FILES}",
    ("workqueues/ledger/elements/files.py", "_USE"): f"picked -> running, of elements; {_FILES}",
    ("workqueues/ledger/elements/ends.py", "_END_USES"): "uses of files by elements: the unique indexes rule them",
    ("workqueues/ledger/elements/returning.py", "_END_USES"): "uses of files by elements: the unique indexes rule them",
    ("workqueues/ledger/pulled_elements.py", "_WORK"): f"Negotiating -> Acquired; {_PULLED}",
    ("workqueues/ledger/pulled_elements.py", "_BEGUN"): f"Acquired -> Running; {_PULLED}",
    ("workqueues/ledger/pulled_elements.py", "_ENDED"): f"Acquired, Running, CancelRequested -> an end; {_PULLED}",
    ("workqueues/ledger/pulled_elements.py", "want_cancelled"): f"-> CancelRequested; {_PULLED}",
    ("workqueues/ledger/pulled_elements.py", "_OVER"): f"Negotiating, Acquired -> Canceled; {_PULLED}",
    ("workqueues/ledger/pulled_elements.py", "give_back"): f"Negotiating, Acquired -> Canceled; {_PULLED}",
    ("workqueues/ledger/elements/files.py", "_GIVE_UP"): f"ready, picked, partial -> failed; {_FILES}",
    ("workqueues/ledger/pulled_elements.py", "fail"): f"Acquired -> Failed; {_PULLED}",
}
"""(file, function or constant) -> why it may write a status."""


def test_only_the_moves_of_the_ledgers_write_a_status() -> None:
    bad = [f"{path}:{line} {scope}" for path, line, scope in _all() if (path, scope) not in MOVES]
    assert not bad, "\n".join(["change a status through move_task, move_dataset or move_jobs:", *bad])


def test_every_exception_is_in_a_ledger_and_still_needed() -> None:
    assert all("/ledger/" in path for path, _ in MOVES)
    assert set(MOVES) == {(path, scope) for path, _, scope in _all()}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("task.status = 'done'", True),
        ("a, task.status = 1, 'done'", True),
        ("Task.objects.filter(id=1).update(status='done')", True),
        ("Task.objects.bulk_update(rows, ['epoch', 'status'])", True),
        ("setattr(task, 'status', 'done')", True),
        ("File(lfn='a', status='ready')", True),
        ("SQL = 'UPDATE workqueues_task SET epoch = 1, status = %s WHERE id = 1'", True),
        ("SQL = 'UPDATE workqueues_task SET epoch = 1 WHERE status = %s'", False),
        ("Task.objects.filter(status='done')", False),
        ("self.status = status", False),
        ("Audit.objects.create(status=204)", False),
        ("HttpResponse(status=204)", False),
    ],
)
def test_the_rule_bites(text: str, found: bool) -> None:
    assert bool(list(_writes(Module("sample.py", text, ast.parse(text))))) is found


def _all() -> Iterator[tuple[str, int, str]]:
    for module in product():
        if not module.path.startswith("brokerage/pilot/"):
            yield from ((module.path, line, scope) for line, scope in _writes(module))


def _writes(module: Module) -> Iterator[tuple[int, str]]:
    """Line and scope of whatever writes a status of a row; an object's own attribute (`self.status`) is none."""
    for node, scope in walked(module):
        match node:
            case ast.Assign(targets=targets):
                written = [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Attribute)]
                if any(n.attr == "status" and ast.unparse(n.value) != "self" for n in written):
                    yield node.lineno, scope
            case ast.Call(keywords=keywords) if any(k.arg == "status" for k in keywords):
                if called(node) in ROWS or (called(node) in WRITES and _of_rows(module, node)):
                    yield node.lineno, scope
            case ast.Call(args=[_, *args]) if called(node) in ("bulk_update", "copy_rows", "setattr"):
                if any(isinstance(n, ast.Constant) and n.value == "status" for arg in args for n in ast.walk(arg)):
                    yield node.lineno, scope
            case ast.Constant(value=str(text)) if SETS_STATUS.search(text) or INSERTS_STATUS.search(text):
                yield node.lineno, scope
            case _:
                continue


def _of_rows(module: Module, call: ast.Call) -> bool:
    """Whether the call is on the rows of ROWS, or, in the apps that have these, on a query whose model cannot be seen."""
    model = re.search(r"(\w+)\.objects", ast.unparse(call.func))
    return model[1] in ROWS if model else module.path.startswith(("workqueues/", "brokerage/"))
