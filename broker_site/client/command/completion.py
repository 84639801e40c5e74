"""`completion`: scripts for bash, zsh and fish, made from the parser itself.

Names and numbers of what there is are asked of the server, where it answers at once; what is more than letters, digits and a few
signs is left out, for a shell would expand it.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence

from broker_site.client.command.filter_words import FILTERS
from broker_site.client.command.grammar import Verb, option
from broker_site.client.command.session import Session
from broker_site.client.errors import OK

SHELLS = ("bash", "zsh", "fish")
Tree = Mapping[tuple[str, ...], Sequence[tuple[str, str]]]
"""Words said so far -> words that may come next, each with what it does."""
Live = Mapping[tuple[str, ...], str]

STATES = ("-s", "--status")
"""Options of a list behind which states stand."""
WHERE = ("--where",)
"""The option behind which a filter of tasks stands."""
LIVE = {
    "task": "task ls -q -n 30", "get": "task ls -q -n 30", "job": "job ls -q -n 30", "logs": "job ls -q -n 30",
    "queue": "queue ls -q -n 0", "share": "share tree -q", "dataset": "dataset ls -q -n 30",
}  # fmt: skip
"""First word of a command that takes a name or number -> the command that lists those."""
TAKES = ("id", "ids", "name")
CAP_S = 1
"""Longer nobody waits for a word: without an answer there are none of these."""
PLAIN = "^[A-Za-z0-9_.:@+-]+$"
ASK = f"GRIDBROKER_PATIENCE=0 timeout {CAP_S} broker"
FILTER = f"2>/dev/null | grep -E '{PLAIN}'"


def completion(session: Session) -> int:
    tree = dict(_tree(session.options.parser, ()))
    live = dict(_live(session.options.parser, ()))
    lines = {"bash": _bash, "zsh": _zsh, "fish": _fish}[session.options.shell](tree, live)
    for line in lines:
        session.printer.line(line)
    return OK


def _tree(parser: argparse.ArgumentParser, said: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[tuple[str, str]]]]:
    words: list[tuple[str, str]] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words += [(choice.dest, choice.help or "") for choice in action._choices_actions]
            for name, below in action.choices.items():
                yield from _tree(below, (*said, name))
        else:
            about = parser._get_formatter()._expand_help(action) if action.help else ""
            words += [(name, about) for name in action.option_strings]
            words += [(str(choice), about) for choice in action.choices or () if not action.option_strings]
            words += [(word, about) for word in _filter_words(action.dest, said)]
    yield said, words


def _filter_words(argument: str, said: tuple[str, ...]) -> Iterator[str]:
    """NAME=VALUE where the values of a filter are known, else NAME=."""
    if argument == "filters":
        yield from _named(_list_of(said))


def _named(rows: str) -> Iterator[str]:
    for name, values in FILTERS.get(rows, {}).items():
        yield from (f"{name}={value}" for value in values or ("",))


def _list_of(said: tuple[str, ...]) -> str:
    """The rows that a list lists; `ls` alone lists tasks. Empty for another command."""
    if said[-1:] != ("ls",):
        return ""
    return said[0] if said[1:] else "task"


def _behind(tree: Tree) -> Iterator[tuple[tuple[str, ...], Sequence[str], Sequence[str]]]:
    """Commands with an option that takes states or filters of tasks: its names, and these."""
    for said, words in tree.items():
        options = {word for word, _ in words}
        if _list_of(said) in FILTERS and options.issuperset(STATES):
            yield said, STATES, FILTERS[_list_of(said)]["status"]
        if WHERE[0] in options:
            yield said, WHERE, list(_named("task"))


def _behind_cases(tree: Tree) -> Iterator[tuple[str, Sequence[str]]]:
    """The same as patterns of `said/option` for a case of a shell."""
    for said, names, after in _behind(tree):
        yield "|".join(shlex.quote("".join(f" {word}" for word in said) + f"/{name}") for name in names), after


def _live(parser: argparse.ArgumentParser, said: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Words said so far -> the command that lists what may come next."""
    verb = parser.get_default("verb")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from _live(below, (*said, name))
        elif verb is not None and not action.option_strings and action.dest in TAKES and verb.words[0] in LIVE:
            yield said, LIVE[verb.words[0]]


def _cases(live: Live) -> Iterator[tuple[str, str]]:
    """Patterns of a shell's `case` -> what lists the words."""
    for command in dict.fromkeys(live.values()):
        yield "|".join(shlex.quote("".join(f" {word}" for word in said)) for said in live if live[said] == command), command


def _bash(tree: Tree, live: Live) -> Iterator[str]:
    """The words said so far that are commands choose a line of cases."""
    yield "_broker() {"
    yield '    local said="" word words'
    yield '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield '        case "$said $word" in'
    yield f'            {"|".join(shlex.quote(" " + " ".join(said)) for said in tree if said)}) said="$said $word" ;;'
    yield "        esac"
    yield "    done"
    yield '    case "$said" in'
    for said, words in tree.items():
        key = shlex.quote("".join(f" {word}" for word in said))
        yield f"        {key}) words={shlex.quote(' '.join(word for word, _ in words))} ;;"
    yield "    esac"
    yield '    [[ ${COMP_WORDS[COMP_CWORD]} == -* ]] || case "$said" in'
    for pattern, command in _cases(live):
        yield f'        {pattern}) words="$words $({ASK} {command} {FILTER})" ;;'
    yield "    esac"
    # Bash cuts a word at =: what stands before belongs to it, and is there already.
    yield '    local typed="${COMP_WORDS[COMP_CWORD]}" before="" at=$COMP_CWORD'
    yield '    if [ "$typed" = = ]; then at=$((at-1)); typed=""; before="${COMP_WORDS[at]}="'
    yield '    elif [ "${COMP_WORDS[COMP_CWORD-1]}" = = ]; then at=$((at-2)); before="${COMP_WORDS[at]}="; fi'
    yield '    case "$said/${COMP_WORDS[at-1]}" in'
    for key, after in _behind_cases(tree):
        yield f"        {key}) words={shlex.quote(' '.join(after))} ;;"
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$before$typed"))'
    yield '    COMPREPLY=("${COMPREPLY[@]#"$before"}")'
    yield '    [ -n "${COMPREPLY[*]}" ] || COMPREPLY=($(compgen -f -- "$typed"))'
    yield "    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null"
    yield "}"
    yield "complete -F _broker broker"


def _zsh(tree: Tree, live: Live) -> Iterator[str]:
    yield "#compdef broker"
    yield "_broker() {"
    yield '    local said="" word'
    yield "    local -a choices"
    yield '    for word in "${(@)words[2,CURRENT-1]}"; do'
    yield '        case "$said $word" in'
    yield f'            ({"|".join(shlex.quote(" " + " ".join(said)) for said in tree if said)}) said="$said $word" ;;'
    yield "        esac"
    yield "    done"
    yield '    case "$said" in'
    for said, words in tree.items():
        key = shlex.quote("".join(f" {word}" for word in said))
        described = " ".join(shlex.quote(f"{word}:{about}") for word, about in words)
        yield f"        ({key}) choices=({described}) ;;"
    yield "    esac"
    yield '    [[ ${words[CURRENT]} == -* ]] || case "$said" in'
    for pattern, command in _cases(live):
        yield f'        ({pattern}) choices+=(${{(f)"$({ASK} {command} {FILTER})"}}) ;;'
    yield "    esac"
    yield '    case "$said/${words[CURRENT-1]}" in'
    for key, after in _behind_cases(tree):
        yield f"        ({key}) choices=({' '.join(after)}) ;;"
    yield "    esac"
    yield "    _describe command choices || _files"
    yield "}"
    yield "compdef _broker broker"


def _fish(tree: Tree, live: Live) -> Iterator[str]:
    yield "function __broker_said"
    yield '    set -l said ""'
    yield "    for word in (commandline -opc)[2..-1]"
    yield '        contains -- "$said $word" $__broker_commands; and set said "$said $word"'
    yield "    end"
    yield '    test "$said" = "$argv[1]"'
    yield "end"
    yield f"set -g __broker_commands {' '.join(_fish_text(' ' + ' '.join(said)) for said in tree if said)}"
    for said, words in tree.items():
        key = "".join(f" {word}" for word in said)
        for word, about in words:
            condition = _fish_text(f'__broker_said "{key}"')
            yield f"complete -c broker -n {condition} -a {_fish_text(word)} -d {_fish_text(about)}"
    for said, names, after in _behind(tree):
        key = "".join(f" {word}" for word in said)
        condition = _fish_text(f'__broker_said "{key}"; and contains -- (commandline -opc)[-1] {" ".join(names)}')
        yield f"complete -c broker -n {condition} -a {_fish_text(' '.join(after))}"
    for said, command in live.items():
        condition = _fish_text(f'__broker_said "{"".join(f" {word}" for word in said)}"')
        yield f"complete -c broker -n {condition} -a {_fish_text(f'(env {ASK} {command} {FILTER})')}"


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


VERBS: Sequence[Verb] = (
    Verb(
        ("completion",),
        "print a script that lets a shell complete the words of this command",
        completion,
        (option("shell", choices=SHELLS, help="the shell"),),
    ),
)
