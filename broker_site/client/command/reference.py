"""The reference page of the command, from its own grammar: `python -m broker_site.client.command.reference`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from broker_site.client.command.grammar import Option
from broker_site.client.command.main import VERBS

HEAD = """# The command broker

What each command takes; made by `python -m broker_site.client.command.reference`. [How to use it](../how-to/command-line.md).

## Exit codes

| code | means |
|---|---|
| 0 | it worked; what was waited for is done |
| 1 | a task or job that was waited for has ended otherwise, or the task is exhausted |
| 2 | the command line cannot be understood, or nobody said yes |
| 3 | there is none, or none that you may see |
| 4 | no good token, or not the right |
| 5 | refused: a field, a filter or a state does not allow it |
| 6 | the server cannot do it now, or does not answer |
| 7 | `--timeout` has passed; task or job goes on |
| 130 | Ctrl-C; task or job goes on |

## Environment

| variable | says |
|---|---|
| `GRIDBROKER_URL`, `GRIDBROKER_TOKEN` | server and token, before those that `broker login` kept |
| `GRIDBROKER_PATIENCE` | seconds for which a call is tried again that the server asks to repeat (90) |
| `XDG_CONFIG_HOME` | below it `gridbroker/client.json` (mode 0600) keeps server and token; else below `~/.config` |
| `NO_COLOR` | no colours |

## Output

On a terminal a table as wide as that; into a pipe a line for each row with tabs between, without titles. Times are in UTC. In
text, what could steer a terminal is written out (`\\x1b`). `--json` gives one line of JSON for each row, in ASCII.
"""


SEVERAL = 4
"""In so many commands an option is told once for all of them."""


def page() -> Iterator[str]:
    told = Counter(_key(each) for verb in VERBS for each in verb.options if each.names[0].startswith("-"))
    common = {_key(each): each for verb in VERBS for each in verb.options if told[_key(each)] >= SEVERAL}
    yield from HEAD.splitlines()
    yield from ("", "## Options of several commands", "", "| | |", "|---|---|")
    yield from (f"| `{_names(action)}` | {_about(action)} |" for action in _actions(list(common.values())))
    yield from ("", "## Commands", "", "Options of several commands stand in brackets.")
    for _, same in groupby(VERBS, lambda verb: (verb.about, verb.options)):
        verb, *others = same
        yield from ("", "### " + ", ".join(f"broker {' '.join(each.words)}" for each in (verb, *others)))
        short = f" Short: `broker {verb.words[-1]}`." if verb.short else ""
        shared = ", ".join(f"`{each.names[-1]}`" for each in verb.options if _key(each) in common)
        yield f"{verb.about[0].upper()}{verb.about[1:]}.{short}{f' ({shared})' if shared else ''}"
        actions = _actions([each for each in verb.options if _key(each) not in common], verb.aside)
        lines = [f"- `{_names(action)}`: {_about(action)}" for action in actions]
        yield from ("", *lines) if lines else ()


def _key(each: Option) -> tuple[str, ...]:
    """The same option with the same meaning."""
    return (*each.names, str(each.how.get("help")))


def _actions(options: Sequence[Option], aside: bool = False) -> Iterator[argparse.Action]:
    for each in options:
        yield argparse.ArgumentParser(add_help=False).add_argument(*each.names, **each.how)
    if aside:
        yield argparse.Action(["--"], "program", metavar="PROGRAM [ARGUMENT ...]", help="the program and its arguments")


def _names(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else "{" + ",".join(map(str, action.choices or ())) + "}"
    if not action.option_strings:
        return {"+": f"{value} ...", "*": f"[{value} ...]", "?": f"[{value}]"}.get(str(action.nargs), value)
    names = ", ".join(action.option_strings)
    if "--json" in action.option_strings:
        return f"{names}[={value}]"
    return names if action.nargs == 0 else f"{names} {value}"


def _about(action: argparse.Action) -> str:
    return ((action.help or "") % vars(action)).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write("\n".join(page()) + "\n")
