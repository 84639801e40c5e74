"""Sets of states and groups of dataset types are declared once, in `states`: nobody else spells one."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest

import brokerage.states
import workqueues.states
import workqueues.states.elements
from broker_site.foundation.kernel.machine import Machine
from tests.arch.source import files, modules, read

DECLARED = ("workqueues/states/__init__.py", "workqueues/states/elements.py", "brokerage/states.py")
ELSEWHERE = ("tests/", "brokerage/pilot/", "broker_site/client/")
"""Tests say what they expect; pilot and client run on machines that have nothing of the broker."""

MACHINES = {
    machine.name: machine
    for module in (workqueues.states, workqueues.states.elements, brokerage.states)
    for machine in vars(module).values()
    if isinstance(machine, Machine)
}
GROUPS = {name: frozenset(machine.states) for name, machine in MACHINES.items()} | {
    "types of datasets": frozenset(workqueues.states.TYPES)
}
"""Machine or types -> the names of which two or more make a set."""

_NAMES = r"'\w+'(?:\s*,\s*'\w+')+"
LISTED = re.compile(rf"(?<!\w)\(\s*{_NAMES}\s*\)|(?<!Literal)\[\s*{_NAMES}\s*\]|'\{{\w+(?:,\w+)+\}}'")
"""SQL: `IN (...)`, `ARRAY[...]`, and the text of an array."""
CHAINED = re.compile(
    r"(?P<what>[\w.]+) (?P<op>=|==|<>|!=) (?P<q>['\"])\w+(?P=q)"
    r"(?: (?:or|and|OR|AND) (?P=what) (?P=op) (?P=q)\w+(?P=q))+(?! and| AND)"
)
"""SQL and templates: one column or value compared with one name after the other."""
WORDS = re.compile(r"\w+")


def test_sets_of_states_and_types_are_declared_in_states() -> None:
    bad = [
        f"{module.path}:{line} {found}"
        for module in modules()
        if module.path not in DECLARED and "/migrations/" not in module.path and not module.path.startswith(ELSEWHERE)
        for line, found in spelled(module.tree)
    ]
    for path in files():
        if path.endswith(".html"):
            bad += [f"{path}:{n} {found}" for n, line in enumerate(read(path).splitlines(), 1) for found in _in_template(line)]
    assert not bad, "\n".join([f"declare these as sets of names in {' or '.join(DECLARED)}, and use them from there:", *bad])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("task.status in ('ready', 'running')", True),
        ("STATES = ['done', 'broken']", True),
        ("frozenset({'sent', 'starting'})", True),
        ("STATES = 'sent starting'.split()", True),
        ("d.type in ('input', 'pseudo_input')", True),
        ("status == 'ready' or status == 'running'", True),
        ("status != 'ready' and status != 'running'", True),
        ("'SELECT 1 FROM t WHERE status IN (\\'ready\\', \\'running\\')'", True),
        ("f'SELECT {x} FROM t WHERE status NOT IN (\\'ready\\', \\'running\\')'", True),
        ("'WHERE t.status = \\'ready\\' OR t.status = \\'running\\''", True),
        ("'WHERE status = ANY (\\'{ready,running}\\')'", True),
        ("'WHERE status = ANY (ARRAY[\\'ready\\', \\'running\\'])'", True),
        ("status == 'ready'", False),
        ("status == 'ready' or sub_status == 'running'", False),
        ("COLUMNS = ('status', 'running')", False),
        ("x: Literal['ready', 'running']", False),
        ('cast(\'Literal["ready", "running"]\', x)', False),
        ("TONES = {'ready': 1, 'running': 2}", False),
        ("'INSERT INTO t (old, new) SELECT id, \\'activated\\', \\'sent\\''", False),
        ("'a task that is ready or running'", False),
    ],
)
def test_the_rule_bites(text: str, found: bool) -> None:
    assert bool(list(spelled(ast.parse(text)))) is found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("{% if task.status == 'ready' or task.status == 'running' %}", True),
        ('{% if task.status in "ready running" %}', True),
        ('{% if task.status == "ready" %}', False),
        ('<span class="swatch done"></span>', False),
    ],
)
def test_the_rule_bites_in_templates(line: str, found: bool) -> None:
    assert bool(list(_in_template(line))) is found


def spelled(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and names of every set that the code spells: in a literal, in a text that is split, in comparisons, in SQL.

    Types of type checkers (`Literal`) can only be spelled; a mapping from each state to something is no set.
    """
    types = {id(n) for s in ast.walk(tree) if isinstance(s, ast.Subscript) and _is_literal(s) for n in ast.walk(s)}
    for node in ast.walk(tree):
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) if id(node) not in types:
                yield from _sets(node.lineno, [_text(part) for part in parts])
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
                yield from _sets(node.lineno, WORDS.findall(text))
            case ast.BoolOp(values=parts):
                compared: dict[str, list[str]] = defaultdict(list)
                for part in parts:
                    match part:
                        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                            compared[ast.unparse(left)].append(_text(right))
                for names in compared.values():
                    yield from _sets(node.lineno, names)
            case ast.MatchOr(patterns=patterns):
                yield from _sets(node.lineno, [_text(p.value) for p in patterns if isinstance(p, ast.MatchValue)])
            case ast.Constant(value=str(text)) if id(node) not in types:
                for found in (*LISTED.finditer(text), *CHAINED.finditer(text)):
                    line = node.lineno + text[: found.start()].count("\n")
                    yield from _sets(line, re.findall(r"(?<=['{,])\w+(?=['},])", found[0]))


def _in_template(line: str) -> Iterator[str]:
    tags = " ".join(re.findall(r"{%.*?%}", line))
    listed = [*CHAINED.finditer(tags), *re.finditer(r"\bin ['\"][\w ,]+['\"]", tags)]
    for found in listed:
        texts = re.findall(r"['\"]([\w ,]+)['\"]", found[0])
        yield from (text for _, text in _sets(0, [word for text in texts for word in WORDS.findall(text)]))


def _sets(line: int, names: Iterable[str]) -> Iterator[tuple[int, str]]:
    given = list(names)
    of = [what for what, known in GROUPS.items() if len(given) > 1 and known.issuperset(given)]
    if of:
        yield line, f"{', '.join(given)}: {' or '.join(of)}"


def _text(node: ast.expr) -> str:
    """The text of a constant, `` of anything else: no state has that name."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_literal(node: ast.Subscript) -> bool:
    return ast.unparse(node.value).endswith("Literal")
