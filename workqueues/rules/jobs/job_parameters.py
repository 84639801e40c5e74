"""Filling the job parameters and the output names of one job.

A template is compiled once per task and filled for each job: a few microseconds, so 200,000 jobs take a second or two. Here:
the forms of file lists and numbers. Not here: the syntax (`placeholders`), what a task may write (`refine`), where the facts of
a job come from (the generator). Source: facts on splitting 8.4; seed 001, "Naming of output file".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from workqueues.rules.jobs.arithmetic import MalformedFormula, formula
from workqueues.rules.jobs.placeholders import MIDDLE_NAME, NUMBERS, TASK_ID, MalformedText, Piece, Placeholder, pieces

_Getter = Callable[["JobFill"], object]
_DIGITS = "0123456789"
NAME_DIGITS = 6
"""Digits of a serial number in a file name, unless the template says another width."""
STORED_ONCE = 1_000
"""From so many characters on that all jobs of a task have in common, they are stored with the task alone."""
_NUMBER, _ANY, _SERIAL = "\0", "\1", "\2"
"""Marks of a template's shape; no name holds them."""


class UnresolvedPlaceholder(ValueError):
    """A placeholder for which the job has no value: a job that must not be made."""


class JobFill(NamedTuple):
    """What one job puts into its template.

    `streams`: names of files by stream, so input streams (IN, IN2, LOWBKG, ...), OUTPUT0.., LOG0.. (one name each) and, for
    pseudo streams, the number as text. `n_events`: events of the job's master files, 0 if unknown. `skip_events`: start in the
    first master file. `first_event`: number of the first event. `seed`: value with the task's offset, None if the task uses
    none. `middle_name`: fields of the input's name (`middle_name` of `file_names`), where the task asks for them.
    """

    task_id: int
    serial: int = 0
    attempt_nr: int = 0
    streams: Mapping[str, Sequence[str]] = {}
    seed: int | None = None
    n_events: int = 0
    skip_events: int = 0
    first_event: int = 0
    middle_name: str = ""


class ParametersTemplate:
    """A compiled job-parameters text; `names` are the placeholders that it uses, `n_constant` the characters of the rest."""

    __slots__ = ("_format", "_getters", "n_constant", "names")

    def __init__(self, text: str) -> None:
        """Raises MalformedText for placeholders that cannot be read or filled."""
        parts = pieces(text)
        self.names = frozenset(n for part in parts if isinstance(part, Placeholder) for n in part.names)
        self.n_constant = sum(len(part) for part in parts if isinstance(part, str))
        self._format = "".join("%s" if isinstance(part, Placeholder) else part.replace("%", "%%") for part in parts)
        self._getters = tuple(_getter(part) for part in parts if isinstance(part, Placeholder))

    def fill(self, job: JobFill) -> str:
        return self.line(self.values(job))

    def values(self, job: JobFill) -> list[str]:
        """What the job puts into its placeholders, in their order."""
        return [str(getter(job)) for getter in self._getters]

    def line(self, values: Sequence[str]) -> str:
        return self._format % tuple(values)


class NameTemplate:
    """A compiled file-name template: `${SN}`, `${SN/P}`, `${SN:08d}`, `${MIDDLENAME}` and `$JEDITASKID`.

    `numbered`: the serial is in it; `middle`: fields of the input's name are.
    """

    __slots__ = ("_cut", "_format", "_pattern", "_serials", "_shape", "middle", "numbered")

    def __init__(self, text: str) -> None:
        """Raises MalformedText for any other placeholder."""
        self._cut = cut = pieces(text)
        parts = [part.replace("%", "%%") if isinstance(part, str) else _in_name(part) for part in cut]
        self._format = "".join(parts)
        self.numbered = any("%(serial)" in part for part in parts)
        self.middle = "%(middle)s" in parts
        self._shape = _shape(cut) if self.numbered else rf"{_shape(cut)}(\.\d+)?"
        self._pattern: re.Pattern[str] | None = None
        self._serials: re.Pattern[str] | None = None

    def name(self, serial: int, task_id: int, middle_name: str = "") -> str:
        """The logical file name of the output with this serial number.

        A template without serial number, allowed where one job writes, gets the number behind a dot from the second try on.
        """
        name = self._format % {"serial": serial, "task": task_id, "middle": middle_name}
        return name if self.numbered or serial <= 1 else f"{name}.{serial}"

    def may_be(self, name: str) -> bool:
        """Whether the template can give this name, for some serial number, task and input; more names may pass."""
        if self._pattern is None:
            self._pattern = re.compile(self._shape)
        return self._pattern.fullmatch(name) is not None

    def may_have(self, name: str, first: int, last: int) -> bool:
        """Whether it can give this name for a serial number from `first` to `last`; more names may pass."""
        if not self.may_be(name):
            return False
        if self._serials is None:
            self._serials = re.compile(_with_serials(self._cut))
        found = self._serials.fullmatch(name)
        return found is None or all(first <= int(serial) <= last for serial in found.groups())


compiled = lru_cache(maxsize=1024)(ParametersTemplate)
compiled_name = lru_cache(maxsize=4096)(NameTemplate)
"""The compiled forms of texts and of templates of file names, kept for the next job."""


def fill(template: str | ParametersTemplate, job: JobFill) -> str:
    return (compiled(template) if isinstance(template, str) else template).fill(job)


def file_list(names: Sequence[str], form: str = "") -> str:
    """Several names as one text, sorted, each once.

    One name stands as it is. By default more become the compact form `head[01,02]tail`, which only payloads that know it can
    read, when they differ in digits only (a `.digits` at the end, an attempt number, is dropped); else, and with form `L`, a
    comma list. Form `S` separates by spaces. Form `A` is a comma list of names in quotes, form `T` a list as Python writes it,
    both also for one name.
    """
    ordered = sorted(set(names))
    if form in ("A", "T"):
        quoted = ",".join("'" + name.replace("'", "\\'") + "'" for name in ordered)
        return f"[{quoted}]" if form == "T" else quoted
    if len(names) == 1:
        return names[0]
    if form == "S":
        return " ".join(ordered)
    if form == "L" or len(ordered) < 2:
        return ",".join(ordered)
    return _compact(ordered) or ",".join(ordered)


def _in_name(part: Placeholder) -> str:
    if part.names == (TASK_ID,):
        return "%(task)d"
    if part.names == (MIDDLE_NAME,) and not (part.form or part.pick or part.width):
        return "%(middle)s"
    if part.names == ("SN",) and part.form in ("", "P") and part.pick is None:
        return f"%(serial)0{part.width or NAME_DIGITS}d"
    raise MalformedText(f"{part.text!r} cannot stand in a file name")


def _shape(cut: Sequence[Piece]) -> str:
    """A pattern of the names, in which nothing is tried twice.

    Numbers with the digits beside them are one run, and from the first middle name to the last anything may stand.
    """
    marks = {MIDDLE_NAME: _ANY}
    text = "".join(part if isinstance(part, str) else marks.get(part.names[0], _NUMBER) for part in cut)
    head, middle, rest = text.partition(_ANY)
    return _runs(head) + (".*" + _runs(rest.rpartition(_ANY)[2]) if middle else "")


def _with_serials(cut: Sequence[Piece]) -> str:
    """As `_shape`, with a group for each serial number that has nothing beside it with which it could be one run."""
    marks = {MIDDLE_NAME: _ANY, "SN": _SERIAL}
    text = "".join(part if isinstance(part, str) else marks.get(part.names[0], _NUMBER) for part in cut)
    beside = f"[0-9{_NUMBER}{_ANY}{_SERIAL}]"
    alone = re.sub(f"(?<={beside}){_SERIAL}|{_SERIAL}(?={beside})", _NUMBER, text)
    head, middle, rest = alone.partition(_ANY)
    shape = _runs(head) + (".*" + _runs(rest.rpartition(_ANY)[2]) if middle else "")
    return shape.replace(_SERIAL, r"(\d++)")


def _runs(text: str) -> str:
    runs = re.split(rf"([0-9{_NUMBER}]+)", text)
    return "".join(r"\d++" if _NUMBER in run else re.escape(run) for run in runs)


def _getter(part: Placeholder) -> _Getter:
    name = part.names[0]
    if name == TASK_ID:
        return lambda job: job.task_id
    if name == MIDDLE_NAME and len(part.names) == 1:
        if part.form or part.pick or part.width:
            raise MalformedText(f"{part.text!r}: {name} is a plain text")
        return lambda job: job.middle_name
    if name in NUMBERS and len(part.names) == 1:
        return _number_getter(part)
    if part.form == "M":
        return _arithmetic(part, _stream_number(part))
    if part.form not in ("", "L", "S", "A", "T", "E"):
        raise MalformedText(f"{part.text!r}: the form /{part.form} is not known")
    return _files_getter(part)


def _number_getter(part: Placeholder) -> _Getter:
    name = part.names[0]
    if part.pick is not None or part.form not in (("", "P", "M") if name == "SN" else ("", "M")):
        raise MalformedText(f"{part.text!r}: {name} is a number")
    width = part.width or (NAME_DIGITS if part.form == "P" else 0)
    value: dict[str, Callable[[JobFill], int]] = {
        "SN": lambda job: job.serial,
        "RNDMSEED": _seed,
        "MAXEVENTS": lambda job: job.n_events or -1,
        "SKIPEVENTS": lambda job: job.skip_events,
        "FIRSTEVENT": lambda job: job.first_event,
        "ATTEMPTNR": lambda job: job.attempt_nr,
    }
    getter = value[name]
    if part.form == "M":
        return _arithmetic(part, getter)
    return (lambda job: f"{getter(job):0{width}d}") if width else getter


def _arithmetic(part: Placeholder, value: Callable[[JobFill], int]) -> _Getter:
    try:
        calculate = formula(part.argument)
    except MalformedFormula as wrong:
        raise MalformedText(f"{part.text!r}: {wrong}") from wrong

    def getter(job: JobFill) -> str:
        try:
            return calculate(value(job))
        except ZeroDivisionError:
            raise UnresolvedPlaceholder(f"{part.text}: division by zero") from None

    return getter


def _stream_number(part: Placeholder) -> Callable[[JobFill], int]:
    """The number that a stream of numbered records holds for the job."""
    if len(part.names) != 1 or part.pick is not None:
        raise MalformedText(f"{part.text!r}: arithmetic takes one number")

    def number(job: JobFill) -> int:
        names = job.streams.get(part.names[0], ())
        if len(names) != 1 or not (names[0].isdigit() and names[0].isascii()):
            raise UnresolvedPlaceholder(f"{part.text}: the job has no number there")
        return int(names[0])

    return number


def _seed(job: JobFill) -> int:
    if job.seed is None:
        raise UnresolvedPlaceholder("${RNDMSEED}: the job has no seed")
    return job.seed


def _files_getter(part: Placeholder) -> _Getter:
    names, form, text = part.names, part.form, part.text
    pick = slice(*part.pick) if part.pick else None

    def files(job: JobFill) -> str:
        try:
            lfns = job.streams[names[0]] if len(names) == 1 else [lfn for name in names for lfn in job.streams[name]]
        except KeyError as missing:
            raise UnresolvedPlaceholder(f"{text}: the job has no stream {missing.args[0]}") from None
        if pick is not None:
            lfns = sorted(set(lfns))[pick]
        if not lfns:
            raise UnresolvedPlaceholder(f"{text}: the job has no file there")
        if form != "E":
            return file_list(lfns, form)
        plain = unquote(file_list(lfns))
        if not plain.isprintable():
            raise UnresolvedPlaceholder(f"{text}: decoded, the names hold what cannot stand on a command line")
        return plain

    return files


def _compact(names: Sequence[str]) -> str:
    """`head[1,2]tail` of sorted names that differ in one run of digits only; empty when they differ in more."""
    shorn = [_without_attempt(name) if name[-1:] in _DIGITS else name for name in names]
    first, last = min(shorn), max(shorn)
    head = 0
    while head < min(len(first), len(last)) and first[head] == last[head]:
        head += 1
    while head and first[head - 1] in _DIGITS:
        head -= 1
    tail = first[head:].lstrip(_DIGITS)
    cut = -len(tail) or None
    middles = [name[head:cut] for name in shorn if name.endswith(tail)]
    joined = "".join(middles)
    if not (joined.isdigit() and joined.isascii() and all(middles)) or len(set(middles)) < len(names):
        return ""
    return f"{first[:head]}[{','.join(middles)}]{tail}"


def _without_attempt(name: str) -> str:
    head, dot, end = name.rpartition(".")
    return head if dot and end.isdigit() else name
