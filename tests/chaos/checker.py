"""The history checker: holds what clients were told against the database and the storage, after faults or a restore.

A program by itself: standard library and psycopg2 only, no code of the application, nothing written.

    python tests/chaos/checker.py --dsn URL [--history FILE]... [--lines]

History files have a JSON object per line, written by clients outside the database: `operation` (submit, report), `actor`, `sent`
and `acked` (ISO 8601), `answer` (HTTP status), and of a submission `key`, `name` and `task`, of a report `job`, `epoch`,
`status`, `recorded`, `outputs`. `--lines`: every input file holds lines that no other one holds, and every job copies the lines
of its inputs to its output. Prints one JSON object `{violations: [{check, what, n, ids}], looked_at}`; exit code 1 when there is
a violation.

Letters: (a) submissions, (b) files used once, (d) histories, (e) settlements and storage, (f) leases, (g) retries, (h) ends of
tasks, (i) decisions, (k) counters. Which moves are allowed is read from the guards of the tables.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg2

MOST_IDS = 20
MARKER = ".gridbroker-storage"
"""What marks the root of a storage."""
STREAMS = ("pilot.log", "stdout", "stderr")
"""What the log of a job is made of: plain files beside it, of which no table tells."""
COLLECTED = {"transferring": ("transferring", "finished", "failed")}
"""What becomes of a job whose outputs were on their way when it was settled."""
UNMERGED = ("merging", "cancelled", "closed")
"""What becomes of a job whose outputs others merge, until they have, and where they cannot."""
TRANSACTION_S = 10.0
"""Times written by one transaction are those of its beginning or of its statements: at most so far apart."""
REFUSED = (401, 409)
"""Answers to a report of a lease that is over: its token has expired as well, or not yet."""
INPUTS = "('input', 'pseudo_input', 'random_seed')"
RULES = Path(__file__).with_name("rules.sql")
_DATASET_MOVES = """SELECT c.dataset_id, c.old, c.new, c.at FROM workqueues_datasetchange c
    JOIN workqueues_dataset d ON d.id = c.dataset_id WHERE d.type {} ORDER BY c.dataset_id, c.epoch"""
_DATASETS = "SELECT id, status, status_since FROM workqueues_dataset WHERE type {}"

OPENING = "^no pilot of .* took it in time: open to any of [0-9]+ queues$"
"""What the history of a job says where it stays in its state and loses its queue."""
HISTORIES = {
    "job": (
        f"SELECT job_id, old, new, at FROM brokerage_jobchange WHERE old <> new OR why !~ '{OPENING}' ORDER BY job_id, id",
        "SELECT id, status, status_since FROM brokerage_job",
    ),
    "task": (
        "SELECT task_id, old, new, at FROM workqueues_taskchange ORDER BY task_id, epoch",
        "SELECT id, status, status_since FROM workqueues_task",
    ),
    "transfer": (
        "SELECT transfer_id, old, new, at FROM brokerage_transferchange ORDER BY transfer_id, id",
        "SELECT id, status, status_since FROM brokerage_transfer",
    ),
    "input_dataset": (_DATASET_MOVES.format(f"IN {INPUTS}"), _DATASETS.format(f"IN {INPUTS}")),
    "output_dataset": (_DATASET_MOVES.format(f"NOT IN {INPUTS}"), _DATASETS.format(f"NOT IN {INPUTS}")),
}
"""Machine, whose arrows stand in the triggers of its name: its moves in their order, and where each row is now."""

Row = tuple[Any, ...]


@dataclass(slots=True)
class Findings:
    """What is wrong, by check and words, and how much was looked at."""

    wrong: dict[tuple[str, str], list[Any]] = field(default_factory=lambda: defaultdict(list))
    looked_at: Counter[str] = field(default_factory=Counter)

    def add(self, check: str, what: str, ids: Iterable[Any]) -> None:
        """Note the ids of one kind of violation."""
        self.wrong[check, what] += ids

    def document(self) -> dict[str, Any]:
        """The answer: violations with the number and the first ids of each."""
        found = [
            {"check": check, "what": what, "n": len(ids), "ids": ids[:MOST_IDS]}
            for (check, what), ids in sorted(self.wrong.items())
            if ids
        ]
        return {"violations": found, "looked_at": dict(self.looked_at)}


class Database:
    """The database as it is at one moment; to be closed, since until then it keeps its tables from being changed."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg2.connect(dsn, options="-c statement_timeout=60000")
        self._connection.set_session(isolation_level="REPEATABLE READ", readonly=True)

    def rows(self, sql: str) -> list[Row]:
        """All rows of a query."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def close(self) -> None:
        """Let go of the moment."""
        self._connection.close()


def check(dsn: str, history: Sequence[dict[str, Any]], *, lines: bool) -> dict[str, Any]:
    """Run every check; the document that is printed."""
    findings = Findings()
    with closing(Database(dsn)) as database:
        for letter, what, sql in read_rules(RULES.read_text(encoding="utf-8")):
            findings.add(letter, what, [row[0] for row in database.rows(sql)])
            findings.looked_at["rules"] += 1
        for machine, (moves, now) in HISTORIES.items():
            check_paths(database, findings, machine, moves, now)
        check_submissions(database, findings, [line for line in history if line["operation"] == "submit"])
        check_reports(database, findings, [line for line in history if line["operation"] == "report"])
        check_storage(database, findings)
        if lines:
            check_lines(database, findings)
    return findings.document()


def read_rules(text: str) -> Iterator[tuple[str, str, str]]:
    """Letter, words and query of each rule of `rules.sql`."""
    yield from re.findall(r"^-- (\w): (.*)\n([^;]*);", text, re.MULTILINE)


def check_paths(database: Database, findings: Findings, machine: str, moves: str, now: str) -> None:
    """(d) Every history is a path along the arrows, in the order of time, and ends where the row is."""
    arrows = read_arrows(database, machine) | {("-", state) for state in read_births(database, machine)}
    kind = machine.replace("_", " ")
    if not arrows:
        findings.add("d", "a table without guard", [kind])
    histories: dict[int, list[Row]] = defaultdict(list)
    for key, *move in database.rows(moves):
        histories[key].append(tuple(move))
    for key, status, since in database.rows(now):
        path = histories.pop(key, [])
        findings.looked_at[f"moves of {kind}"] += len(path)
        if any((old, new) not in arrows for old, new, _ in path):
            findings.add("d", f"{kind}: a move that is not allowed", [key])
        if [old for old, _, _ in path] != ["-", *(new for _, new, _ in path[:-1])]:
            findings.add("d", f"{kind}: the history is no path", [key])
        if any(later[2] < sooner[2] for sooner, later in pairwise(path)):
            findings.add("d", f"{kind}: times go back", [key])
        if not path or path[-1][1] != status or abs((path[-1][2] - since).total_seconds()) > TRANSACTION_S:
            findings.add("d", f"{kind}: the last move is not to where it is since then", [key])
    findings.add("d", f"{kind}: history of nothing", histories)


def read_arrows(database: Database, machine: str) -> set[tuple[str, str]]:
    """The moves that the guard of a machine lets pass: `old>new` in the text of its function."""
    rows = database.rows(f"SELECT prosrc FROM pg_proc WHERE proname = '{machine}_refused'")
    return {arrow for (text,) in rows for arrow in re.findall(r"(\w+)>(?=(\w+))", text)}


def read_births(database: Database, machine: str) -> set[str]:
    """The states in which the guard of a machine lets a row be inserted."""
    rows = database.rows(f"SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = '{machine}_birth'")
    texts = [text.rpartition("(new.status)::text")[2] for (text,) in rows]
    return {state for text in texts for state in re.findall(r"'(\w+)'::", text)}


def check_submissions(database: Database, findings: Findings, history: Sequence[dict[str, Any]]) -> None:
    """(a) Every acknowledged submission is there once, with the task that was answered; others at most once."""
    stored: dict[str, list[int]] = defaultdict(list)
    for key, task in database.rows(
        "SELECT s.key, t.id FROM workqueues_submission s LEFT JOIN workqueues_task t ON t.id = s.task_id"
    ):
        stored[key].append(task)
    names = Counter(name for (name,) in database.rows("SELECT task_name FROM workqueues_task"))
    for line in history:
        findings.looked_at["submissions"] += 1
        if line["answer"] in (200, 201) and stored.get(line["key"]) != [line["task"]]:
            findings.add("a", "an acknowledged submission is not there exactly once", [line["key"]])
        if names[line["name"]] > 1 or (line["answer"] in (200, 201) and not names[line["name"]]):
            findings.add("a", "a submission made another number of tasks than one", [line["name"]])


def check_reports(database: Database, findings: Findings, history: Sequence[dict[str, Any]]) -> None:
    """(e) Every answer to a final report says what the database says; no job was settled under two leases."""
    jobs = {row[0]: row[1:] for row in database.rows("SELECT id, epoch, status FROM brokerage_job")}
    outputs: dict[int, set[Row]] = defaultdict(set)
    for job, *facts in database.rows(
        "SELECT out_job_id, lfn, fsize, checksum FROM workqueues_file WHERE out_job_id IS NOT NULL AND status = 'finished'"
    ):
        outputs[job].add(tuple(facts))
    merged = {row[0] for row in database.rows("SELECT out_job_id FROM workqueues_file WHERE type LIKE 'trn_%'")}
    taken: dict[int, set[int]] = defaultdict(set)
    for line in history:
        job, epoch, answer = line["job"], line["epoch"], line["answer"]
        findings.looked_at[f"reports answered {answer}"] += 1
        name = f"{job}.{epoch}"
        if answer == 200:
            taken[job].add(epoch)
            now_epoch, now = jobs.get(job, (None, None))
            later = (*COLLECTED.get(line["recorded"], (line["recorded"],)), *(UNMERGED if job in merged else ()))
            if now_epoch != epoch or now not in later:
                findings.add("e", "an acknowledged settlement is not in the database", [name])
            told = {(o["lfn"], o["size"], o["checksum"]) for o in line["outputs"]}
            if (now == "finished" or line.get("status") == "failed") and told != outputs[job]:
                findings.add("e", "outputs of an acknowledged settlement are not recorded as reported", [name])
        elif answer not in REFUSED:
            findings.add("e", f"a pilot's report was answered {answer}", [name])
    findings.add("e", "a job was settled under two leases", [job for job, epochs in taken.items() if len(epochs) > 1])


def check_storage(database: Database, findings: Findings) -> None:
    """(e) Each copy that is registered lies on storage as registered, and nothing else does; one that is being removed may.

    Beside a log its streams may lie.
    """
    roots: dict[str, str] = dict(database.rows("SELECT name, path FROM brokerage_storageendpoint WHERE path <> ''"))
    known: dict[Path, Row] = {}
    going: set[Path] = set()
    logs: set[Path] = set()
    for storage, path, lfn, size, checksum, state, is_log in database.rows(
        "SELECT r.storage, r.path, c.lfn, c.fsize, c.checksum, r.state, EXISTS (SELECT FROM workqueues_dataset d"
        " WHERE d.dataset_name = e.name AND d.vo = e.vo AND d.type IN ('log', 'trn_log')) FROM workqueues_replica r"
        " JOIN workqueues_cataloguefile c ON c.id = r.file_id JOIN workqueues_cataloguedataset e ON e.id = c.dataset_id"
    ):
        where = Path(roots.get(storage, "/nowhere")) / (path or lfn)
        known[where] = (size, checksum)
        if is_log:
            logs.add(where)
        if state != "available":
            going.add(where)
    lying = {path for root in roots.values() for path in _files_below(Path(root))}
    findings.looked_at["files on storage"] += len(lying)
    findings.add("e", "a registered file is not on storage", [str(path) for path in known.keys() - lying - going])
    findings.add("e", "a file on storage is not registered", [str(p) for p in lying - known.keys() if not is_stream(p, logs)])
    for path in known.keys() & lying:
        content = path.read_bytes()
        if (len(content), f"{zlib.adler32(content):08x}") != known[path]:
            findings.add("e", "a file on storage is not as registered", [str(path)])


def is_stream(path: Path, logs: Collection[Path]) -> bool:
    """Whether the file is a stream of one of these logs."""
    return any(path.name.endswith(f".{each}") and path.with_name(path.name.removesuffix(f".{each}")) in logs for each in STREAMS)


def _files_below(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        yield from (Path(folder) / name for name in names if name != MARKER)


def check_lines(database: Database, findings: Findings) -> None:
    """(b) The lines of the finished inputs of each task are the lines of its outputs, each once."""
    where = """SELECT DISTINCT ON (d.task_id, c.id) d.task_id, e.path, r.path, c.lfn FROM workqueues_dataset d
        JOIN workqueues_file f ON f.dataset_id = d.id
        JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name AND cd.vo = d.vo
        JOIN workqueues_cataloguefile c ON c.dataset_id = cd.id AND c.lfn = f.lfn
        JOIN workqueues_replica r ON r.file_id = c.id AND r.state = 'available'
        JOIN brokerage_storageendpoint e ON e.name = r.storage WHERE f.status = 'finished' AND d.type = '{}'"""
    read, written = _lines(database.rows(where.format("input"))), _lines(database.rows(where.format("output")))
    findings.looked_at["lines"] += read.total()
    findings.add("b", "a line of a finished input is in no output: lost", [line for _, line in read - written])
    findings.add("b", "a line is in outputs more often than in inputs: doubled", [line for _, line in written - read])


def _lines(rows: Sequence[Row]) -> Counter[tuple[int, str]]:
    found: Counter[tuple[int, str]] = Counter()
    for task, root, path, lfn in rows:
        file = Path(root) / (path or lfn)
        if file.exists():
            found.update((task, line) for line in file.read_text(encoding="utf-8").splitlines())
    return found


def read_history(files: Sequence[Path]) -> list[dict[str, Any]]:
    """All operations of several histories."""
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def main() -> int:
    """Check and print; the exit code."""
    parser = argparse.ArgumentParser(description="Hold recorded answers against database and storage.")
    parser.add_argument("--dsn", required=True, help="URL of the database")
    parser.add_argument("--history", action="append", type=Path, default=[], metavar="FILE", help="recorded operations")
    parser.add_argument("--lines", action="store_true", help="jobs copy the lines of their inputs to their output")
    options = parser.parse_args()
    answer = check(options.dsn, read_history(options.history), lines=options.lines)
    print(json.dumps(answer, indent=1))
    return 1 if answer["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
