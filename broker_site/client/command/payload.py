"""The command line of a payload as items of task parameters. Pure.

In the arguments `%IN` stands for the files of the first input, `%IN2` for those of the second; `%RNDM` for a random seed,
`%SEQ` for the number of the job, `%MAXEVENTS`, `%SKIPEVENTS` and `%FIRSTEVENT` for events. `%%` is a percent sign.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from broker_site.client.errors import Unusable

Item = dict[str, Any]
NUMBERS = {
    "RNDM": "RNDMSEED", "SEQ": "SEQNUMBER", "MAXEVENTS": "MAXEVENTS", "SKIPEVENTS": "SKIPEVENTS", "FIRSTEVENT": "FIRSTEVENT",
}  # fmt: skip
_MARK = re.compile(r"%(%|[A-Z]+\d*)")


def items(task: str, words: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]) -> list[Item]:
    """The items in the order of the words, then inputs that no word names, then outputs. Raises Unusable."""
    if not task:
        raise Unusable("No name", "a task has one, and its outputs are called after it", "--name NAME")
    named: set[int] = set()
    made = [_item(word, inputs, named) for word in words] or [{"type": "constant", "value": ""}]
    left = [n for n in range(len(inputs)) if n not in named]
    return [*made, *(_input(_stream(n), inputs[n], hidden=True) for n in left), *_outputs(task, outputs)]


def log(task: str) -> Item:
    """Where the logs go."""
    return {"type": "template", "param_type": "log", "dataset": f"{task}.log", "value": f"{task}.log.${{SN}}.tgz"}


def _item(word: str, inputs: Sequence[str], named: set[int]) -> Item:
    """One word as an item; `named` gets the inputs that it names."""
    marks = [mark for mark in _MARK.findall(word) if mark != "%"]
    text = _quoted(word)
    if not marks:
        return {"type": "constant", "value": text}
    if len(marks) > 1:
        raise Unusable("Two marks in one argument", repr(word), "make two arguments of it")
    (mark,) = marks
    if mark in NUMBERS:
        if mark == "SEQ":
            return {"type": "template", "param_type": "pseudo_input", "dataset": "seq_number", "value": text}
        return {"type": "template", "param_type": "number", "value": text}
    streams = {_stream(n): n for n in range(len(inputs))}
    if mark not in streams:
        known = ", ".join(f"%{each}" for each in (*streams, *NUMBERS))
        raise Unusable(f"Nothing is called %{mark}", repr(word), f"there are: {known}; %% is a percent sign")
    named.add(streams[mark])
    return _input(mark, inputs[streams[mark]], text)


def _stream(n: int) -> str:
    return "IN" if n == 0 else f"IN{n + 1}"


def _quoted(word: str) -> str:
    """The word as a shell would have it written, each mark as the placeholder that it stands for."""

    def placeholder(found: re.Match[str]) -> str:
        mark = found[1]
        return "%" if mark == "%" else f"${{{NUMBERS[mark]}}}" if mark in NUMBERS else f"${{{mark}/L}}"

    plain = shlex.quote(_MARK.sub("", word)) == _MARK.sub("", word) or not _MARK.sub("", word)
    text = _MARK.sub(placeholder, word)
    return text if plain and word else shlex.quote(text)


def _input(stream: str, dataset: str, text: str = "", hidden: bool = False) -> Item:
    made: Item = {"type": "template", "param_type": "input", "dataset": dataset, "value": text or f"${{{stream}/L}}"}
    return {**made, "hidden": True} if hidden else made


def _outputs(task: str, outputs: Sequence[str]) -> Iterator[Item]:
    """The payload writes a file under its own name; on storage it is called after the task, with a serial number."""
    for file in outputs:
        yield {
            "type": "template", "param_type": "output", "dataset": f"{task}.{file}", "value": f"{task}.${{SN}}.{file}",
            "sourceName": file, "hidden": True,
        }  # fmt: skip
