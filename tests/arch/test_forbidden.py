"""What no code of ours does: run text as code, unpack objects from bytes, call a shell, drop protections, lose a time zone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.arch.source import Module, called, files, modules, product, read, walked

RUNS_TEXT = frozenset({"eval", "exec", "compile", "__import__"})
UNPACKS = frozenset({"pickle", "cPickle", "marshal", "shelve", "dill", "jsonpickle", "yaml"})
EVENTS_OF_YAML = "broker_site/foundation/yaml_text.py"
"""The one module that reads YAML: event by event, so that no constructor of the parser ever runs."""
NAMES_OF_YAML = re.compile(r"parse|(?:C?SafeLoader)|YAMLError|MarkedYAMLError|(?:\w+)?Event")
SHELL = frozenset({"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"})
SWITCHED_OFF = frozenset({"csrf_exempt", "mark_safe", "SafeString", "SafeText", "xframe_options_exempt", "login_not_required"})
UNSAFE_TEMPLATE = re.compile(r"\|\s*safe(?:seq)?\b|{%\s*autoescape\s+off|{%\s*csrf_exempt")
NAIVE = frozenset({"utcnow", "utcfromtimestamp", "today"})
AWARE_WITH_ZONE = {"now": 0, "fromtimestamp": 1}
"""Constructors of datetime -> how many arguments stand before the time zone."""


def test_no_code_of_ours_does_what_is_forbidden() -> None:
    """Tests may: they run on nobody's data."""
    ours = [module for module in modules() if not module.path.startswith("tests/")]
    bad = [f"{module.path}:{line} {what}" for module in ours for line, what in _forbidden(module)]
    assert not bad, "\n".join(bad)


def test_yaml_is_read_by_its_events_only() -> None:
    """What runs constructors (`load` and its kin) or writes objects is not even named."""
    (module,) = (module for module in modules() if module.path == EVENTS_OF_YAML)
    used = {node.attr for node, _ in walked(module) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "yaml"}
    assert "parse" in used
    assert not [name for name in used if not NAMES_OF_YAML.fullmatch(name)]


def test_no_template_switches_escaping_off() -> None:
    bad = [
        f"{path}: {found[0]}"
        for path in files()
        if path.endswith(".html") and (found := UNSAFE_TEMPLATE.search(read(path)))
    ]  # fmt: skip
    assert not bad, "\n".join(bad)


def test_every_time_has_its_zone() -> None:
    bad = [f"{module.path}:{line}" for module in product() for line in _naive(module)]
    assert not bad, "\n".join(["ask kernel.clock, or give the time zone:", *bad])


def test_leases_and_claims_end_by_the_clock_of_the_database() -> None:
    """Two machines never agree on the time; what is compared with a column is compared by PostgreSQL's now()."""
    bad = [
        f"{module.path}:{node.lineno} {ast.unparse(node)}"
        for module in product()
        if "/ledger/" in module.path
        for node, _ in walked(module)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("clock.now", "time.time", "timezone.now", "datetime.now")
    ]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(
    "text",
    [
        "eval('1')",
        "import pickle",
        "from yaml import load",
        "subprocess.run('ls', shell=True)",
        "os.system('ls')",
        "from django.views.decorators.csrf import csrf_exempt",
        "mark_safe('<b>')",
    ],
)
def test_the_rule_bites(text: str) -> None:
    assert list(_forbidden(Module("sample.py", text, ast.parse(text))))


@pytest.mark.parametrize(
    ("text", "naive"),
    [
        ("datetime.now()", True),
        ("datetime.utcnow()", True),
        ("date.today()", True),
        ("datetime.fromtimestamp(0)", True),
        ("datetime.now(UTC)", False),
        ("datetime.fromtimestamp(0, tz=UTC)", False),
        ("clock.now()", False),
    ],
)
def test_the_rule_on_times_bites(text: str, naive: bool) -> None:
    assert bool(list(_naive(Module("sample.py", text, ast.parse(text))))) is naive


def _forbidden(module: Module) -> Iterator[tuple[int, str]]:
    for node, _ in walked(module):
        match node:
            case ast.Import(names=names):
                roots = {alias.name.partition(".")[0] for alias in names}
                allowed = {"yaml"} if module.path == EVENTS_OF_YAML else set()
                yield from ((node.lineno, f"imports {name}") for name in (roots & UNPACKS) - allowed)
            case ast.ImportFrom(names=names, module=source):
                yield from ((node.lineno, f"imports from {source}") for _ in {(source or "").partition(".")[0]} & UNPACKS)
                yield from ((node.lineno, f"imports {alias.name}") for alias in names if alias.name == "csrf_exempt")
            case ast.Call(func=ast.Name(id=name)) if name in RUNS_TEXT | SWITCHED_OFF:
                yield node.lineno, f"calls {name}"
            case ast.Call(func=function, keywords=keywords):
                name = ast.unparse(function) if isinstance(function, ast.Attribute) else ""
                if name in SHELL or name.rpartition(".")[2] in SWITCHED_OFF:
                    yield node.lineno, f"calls {name}"
                if any(k.arg == "shell" and not (isinstance(k.value, ast.Constant) and k.value.value is False) for k in keywords):
                    yield node.lineno, "calls a shell"
            case _:
                continue


def _naive(module: Module) -> Iterator[int]:
    for node, _ in walked(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, name = ast.unparse(node.func.value), called(node)
            if owner.rpartition(".")[2] not in ("datetime", "date"):
                continue
            given = len(node.args) + sum(k.arg in ("tz", "tzinfo") for k in node.keywords)
            if name in NAIVE or given <= AWARE_WITH_ZONE.get(name, -1):
                yield node.lineno
