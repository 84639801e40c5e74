"""The words of the command: groups, verbs, options, from which parser, completion and reference page are made."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Callable

from broker_site.client.command.session import Session


@dataclass(frozen=True)
class Option:
    """An option or argument as argparse takes it: its names, and how it is read."""

    names: Sequence[str]
    how: dict[str, Any]


def option(*names: str, **how: Any) -> Option:
    return Option(names, how)


@dataclass(frozen=True)
class Verb:
    """One command: its words, what it does in a sentence, its options, and the function that does it, giving an exit code.

    `short`: it may be said without its group. `aside`: what stands behind `--` is for `options.program`.
    """

    words: Sequence[str]
    about: str
    run: Callable[[Session], int]
    options: Sequence[Option] = ()
    short: bool = False
    aside: bool = False


JSON = option(
    "--json",
    metavar="FIELDS",
    type=lambda text: [name for name in text.split(",") if name],
    help="one line of JSON for each, with all fields; --json=id,status: with these",
)
CSV = option("--csv", action="store_true", help="CSV with a line of titles")
QUIET = option("-q", "--quiet", action="store_true", help="ids alone")
URL = option("--url", action="store_true", help="print the address of the page instead")
WEB = option("--web", action="store_true", help="open the page in a browser instead")
LIST = (
    option("filters", nargs="*", metavar="NAME=VALUE", help="filters as the server knows them; names may have * and ?"),
    option("-n", "--limit", type=int, metavar="N", help="rows at most, 0 for all (100)"),
    JSON, CSV, QUIET, URL, WEB,
)  # fmt: skip
SHOW = (JSON, URL, WEB)
IDS = option("ids", nargs="+", metavar="ID", help="numbers, or - for those on standard input")
ONE = option("id", metavar="ID", help="its number")
NAME = option("name", metavar="NAME", help="its name")
YES = option("-y", "--yes", action="store_true", help="do not ask, also where it is more than one")
COMMENT = option("-m", "--comment", default="", metavar="TEXT", help="why, for the history")
TIMEOUT = option("--timeout", type=float, metavar="S", help="seconds to wait at most; then exit code 7")

GROUPS = {
    "task": "tasks: what was submitted",
    "job": "jobs, of which a task is made",
    "queue": "computing queues",
    "share": "shares and work queues",
    "dataset": "datasets of tasks",
    "cfg": "the configuration, and its changes",
    "token": "your own tokens",
    "bulk": "acts on many tasks or jobs",
}
"""First words of commands of two words, and what they are about."""


class Parser(argparse.ArgumentParser):
    """As argparse does it, but where a mistyped word is like one that there is, that one is told, not all of them."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = [str(choice) for choice in action.choices or ()]
        near = get_close_matches(str(value)[:100], known, 1) if value not in known else []
        if near:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; the nearest one is {near[0]!r}")
        super()._check_value(action, value)


def parser_of(verbs: Sequence[Verb]) -> argparse.ArgumentParser:
    """The parser of all of them. `options.verb` is the one that was said."""
    top = Parser(prog="broker", description="Tasks of GridBroker from the command line.", allow_abbrev=False)
    first = top.add_subparsers(metavar="COMMAND", required=True)
    groups: dict[str, Any] = {}
    for group, about in GROUPS.items():
        below = first.add_parser(group, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False)
        groups[group] = below.add_subparsers(metavar="COMMAND", required=True)
    for verb in verbs:
        *before, last = verb.words
        _add(groups[before[0]] if before else first, last, verb)
        if verb.short:
            _add(first, last, verb)
    return top


def _add(below: Any, name: str, verb: Verb) -> None:
    about = f"{verb.about[0].upper()}{verb.about[1:]}."
    parser = below.add_parser(name, help=verb.about, description=about, allow_abbrev=False)
    for each in verb.options:
        parser.add_argument(*each.names, **each.how)
    parser.set_defaults(verb=verb)


def parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """The options that these words are. Ends by SystemExit(2) where they cannot be understood.

    argparse takes arguments of which there may be none or several only where they stand together, before or behind all options:
    those that it leaves over are put where they belong.
    """
    options, over = parser.parse_known_args(list(words))
    many = next((each for each in options.verb.options if "nargs" in each.how), None)
    if over and (many is None or any(word.startswith("-") and word != "-" for word in over)):
        parser.error(f"unrecognized arguments: {' '.join(over)}")
    if over and many is not None:
        (name,) = many.names
        before = getattr(options, name)
        if many.how["nargs"] != "?":
            setattr(options, name, [*(before or ()), *over])
        elif before is None and len(over) == 1:
            setattr(options, name, over[0])
        else:
            parser.error(f"unrecognized arguments: {' '.join(over)}")
    return options


def divided(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before and behind the first `--`, as argparse wants them.

    A `--json` alone takes all fields: it never takes the next word, which may be an id.
    """
    given = list(words)
    cut = given.index("--") if "--" in given else len(given)
    return ["--json=" if word == "--json" else word for word in given[:cut]], given[cut + 1 :]
