"""The glossary: each word that pages use for a state, a criterion or an error, with what it means and what follows from it.

Made from what the system itself works by: the words of the badges, the arrows of the state machines, the declared criteria. So
no word is without, and none is told that is not used. Not here: the page (`monitoring.views.glossary`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from broker_site.foundation.kernel.machine import Machine, Names
from brokerage.rules.decision.declare import POLICIES, Criterion
from brokerage.states import JOB, TRANSFER
from monitoring.error_words import ERRORS
from monitoring.wording import WORDS, Word
from workqueues.states import EVENT, INPUT_DATASET, INPUT_FILE, OUTPUT_DATASET, OUTPUT_FILE, TASK
from workqueues.states.elements import ELEMENT


class Entry(NamedTuple):
    """A word. `anchor`: where it stands on the page; `keys`: configuration keys that it depends on."""

    anchor: str
    term: str
    word: Word | None
    means: Sequence[str]
    follows: str
    keys: Sequence[str] = ()


class Section(NamedTuple):
    """Words of one kind."""

    name: str
    title: str
    entries: Sequence[Entry]


STATES: Mapping[str, tuple[str, Sequence[Machine]]] = {
    "task": ("States of tasks", (TASK,)),
    "job": ("States of jobs", (JOB,)),
    "dataset": ("States of a task's datasets", (INPUT_DATASET, OUTPUT_DATASET)),
    "file": ("States of a task's files", (INPUT_FILE, OUTPUT_FILE)),
    "range": ("States of ranges of events", (EVENT,)),
    "transfer": ("States of transfers", (TRANSFER,)),
    "element": ("States of elements, the parts of a task that child brokers pull", (ELEMENT,)),
}
OTHERS: Mapping[str, str] = {
    "queue": "Statuses of computing queues",
    "copy": "States of copies of files",
    "wish": "Wishes for copies",
    "use": "A job and its input files",
    "outcome": "Outcomes of decisions",
    "pilot": "States of pilots",
    "throttle": "Verdicts of the throttler",
    "agent": "Health of agents",
    "child": "How child brokers stand",
    "site": "States of the sites of child brokers",
}
"""Kinds of words that no state machine rules."""

WAITING_HELPS = "It may pass with time, and is judged anew at each look."
COMES_BACK = "The task need not change: a queue, link, pilot or file may come back."
LASTS = "Waiting does not help: the task, the queue or the configuration has to change."


def sections() -> list[Section]:
    """The whole glossary, in the order of a task's life."""
    states = [
        Section(kind, title, [_state(kind, name, word, machines) for name, word in WORDS[kind].items()])
        for kind, (title, machines) in STATES.items()
    ]
    others = [
        Section(kind, title, [Entry(anchor(kind, name), name, word, [word.help], "") for name, word in WORDS[kind].items()])
        for kind, title in OTHERS.items()
    ]
    errors = [Entry(anchor("error", code), code, None, [error.means], error.helps) for code, error in ERRORS.items()]
    criteria = Section("criterion", "Criteria of the brokerage", list(_criteria()))
    return [*states, criteria, Section("error", "Errors of jobs", errors), *others]


def anchor(kind: str, term: str) -> str:
    """Where a word stands on the page; a criterion with or without its dash."""
    return f"{kind}-{term.lstrip('-').replace(' ', '-').replace(',', '')}"


def _state(kind: str, name: str, word: Word, machines: Sequence[Machine]) -> Entry:
    nexts = Names(t.target for machine in machines for t in machine.transitions if t.source == name and t.target != name)
    if nexts:
        follows = f"From here it goes to {_list(nexts, 'or')}."
    else:
        follows = "It stays so." if any(name in machine.states for machine in machines) else ""
    return Entry(anchor(kind, name), name, word, [word.help], follows)


def _criteria() -> Iterator[Entry]:
    """Each label once, with what the rules that skip by it ask for, and in which policies where these differ."""
    found: dict[str, list[tuple[str, Criterion, str, Sequence[str]]]] = {}
    for policy in POLICIES.values():
        for rule in policy.rules:
            for criterion in rule.criteria:
                found.setdefault(criterion.label, []).append((policy.name, criterion, _one_line(rule.doc), rule.keys))
        for criterion in policy.criteria[len(policy.judged) :]:
            found.setdefault(criterion.label, []).append(
                (policy.name, criterion, f"Skipped when it {_bare(criterion.reason)}.", ())
            )
    for label, uses in sorted(found.items()):
        asked: dict[str, list[str]] = {}
        for policy_name, _, doc, _ in uses:
            asked.setdefault(doc, []).append(policy_name)
        keys = sorted({key for *_, of_rule in uses for key in of_rule})
        kinds = dict.fromkeys(_kind(criterion) for _, criterion, _, _ in uses)
        lines = [doc if len(asked) == 1 else f"{_list(dict.fromkeys(names))}: {doc}" for doc, names in asked.items()]
        yield Entry(anchor("criterion", label), f"-{label}", None, lines, " Or: ".join(kinds), keys)


def _kind(criterion: Criterion) -> str:
    if criterion.kind == "temporary":
        return WAITING_HELPS
    return COMES_BACK if criterion.returns else LASTS


def _list(names: Iterable[str], last_word: str = "and") -> str:
    *first, last = names
    return f"{', '.join(first)} {last_word} {last}" if first else last


def _one_line(doc: str) -> str:
    """What a rule asks for, without its source and without marks."""
    return " ".join(doc.split()).partition(" Source:")[0].replace("`", "")


def _bare(reason: str) -> str:
    """The sentence of a skip without its numbers."""
    return re.sub(r":? *\{[^}]*\}", "", reason)
