"""The client runs on Python 3.9 and its standard library; its names of states are those that there are."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from broker_site.client import jobs, progress, tasks
from broker_site.client.command.filter_words import FILTERS
from broker_site.client.command.main import main
from broker_site.client.outputs import STORED
from broker_site.foundation.rest.filtering import AnyOf, ListFilter
from brokerage.api.filtering import JobFilter, QueueFilter
from brokerage.states import JOB
from tests.arch.source import ROOT, Module, product, read
from workqueues.api.filtering import DatasetFilter, TaskFilter
from workqueues.states import MASTER_TYPES, OUTPUT_FILE, TASK

OLDEST = (3, 9)
ROOM = "broker_site/client/"
OURS = "broker_site.client"
LATER = {
    "tomllib", "datetime.UTC", "itertools.pairwise", "itertools.batched", "contextlib.chdir", "contextlib.aclosing",
    "enum.StrEnum",
    "typing.Self", "typing.TypeAlias", "typing.ParamSpec", "typing.Concatenate", "typing.TypeGuard", "typing.override",
    "typing.assert_never", "typing.Never", "typing.LiteralString", "typing.Required", "typing.NotRequired", "typing.Unpack",
    "types.NoneType", "types.EllipsisType", "types.UnionType", "inspect.get_annotations", "statistics.covariance", "math.cbrt",
    "math.exp2", "operator.call", "hashlib.file_digest", "logging.getLevelNamesMapping", "threading.setprofile_all_threads",
    "builtins.aiter", "builtins.anext", "builtins.ExceptionGroup", "builtins.BaseExceptionGroup", "builtins.EncodingWarning",
}  # fmt: skip
"""What came to the standard library after 3.9; what came after 3.10 mypy finds too (`make lint`)."""
KEYWORDS = {"dataclass": {"slots", "kw_only", "match_args"}, "zip": {"strict"}, "bisect": {"key"}, "open_code": set[str]()}
"""Keywords that came later."""
METHODS = {"hardlink_to", "walk", "is_junction", "add_note", "bit_count"}


def modules() -> list[Module]:
    return [module for module in product() if module.path.startswith(ROOM)]


def later(tree: ast.AST) -> Iterator[str]:
    """What Python 3.9 does not have."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in LATER)
            case ast.ImportFrom(module=source, names=names):
                yield from (f"{source}.{each.name}" for each in names if f"{source}.{each.name}" in LATER or source in LATER)
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if f"{owner}.{name}" in LATER:
                yield f"{owner}.{name}"
            case ast.Attribute(attr=name) if name in METHODS:
                yield name
            case ast.Name(id=name) if f"builtins.{name}" in LATER:
                yield name
            case ast.Call(func=ast.Name(id=name), keywords=words) if name in KEYWORDS:
                yield from (f"{name}({word.arg})" for word in words if word.arg in KEYWORDS[name])


def strange(tree: ast.AST) -> Iterator[str]:
    """Imports that are neither the client's nor the standard library's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or "."]
            for name in names:
                if not (name == OURS or name.startswith(f"{OURS}.") or name.partition(".")[0] in sys.stdlib_module_names):
                    yield name


def unready(tree: ast.Module) -> bool:
    """Whether annotations are read when the module is, so that `int | None` fails on 3.9."""
    return bool(tree.body[1:]) and not any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body)


def test_every_module_of_the_client_is_python_3_9() -> None:
    assert len(modules()) > 20
    bad = []
    for module in modules():
        ast.parse(module.text, module.path, feature_version=OLDEST)
        bad += [f"{module.path}: {name}" for name in (*later(module.tree), *strange(module.tree))]
        bad += [f"{module.path}: no annotations of __future__"] if unready(module.tree) else []
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import UTC",
        "import tomllib",
        "import datetime\ndatetime.UTC",
        "@dataclass(slots=True)\nclass A: ...",
        "zip(a, b, strict=True)",
        "from typing import Self",
        "raise ExceptionGroup('', [])",
    ],
)
def test_the_rule_on_names_bites(text: str) -> None:
    assert list(later(ast.parse(text)))


@pytest.mark.parametrize("text", ["match a:\n    case 1: pass", "try: pass\nexcept* OSError: pass"])
def test_the_rule_on_words_bites(text: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(text, feature_version=OLDEST)


@pytest.mark.parametrize(
    "text", ["import django", "from broker_site.env import Env", "from workqueues.states import TASK", "import rich"]
)
def test_the_rule_on_imports_bites(text: str) -> None:
    assert list(strange(ast.parse(text)))


def test_names_of_states_in_the_client_are_those_that_there_are() -> None:
    assert frozenset(MASTER_TYPES) == progress.MASTERS
    assert tasks.WELL in TASK.final
    assert tasks.STUCK in TASK.states - TASK.final
    assert jobs.WELL in JOB.final - set(JOB.unsuccessful)
    assert STORED in OUTPUT_FILE.stored


@pytest.mark.parametrize(
    ("of", "declared"), [("task", TaskFilter), ("job", JobFilter), ("queue", QueueFilter), ("dataset", DatasetFilter)]
)
def test_the_filters_that_shells_complete_are_those_that_the_server_knows(of: str, declared: type[ListFilter]) -> None:
    known = {name: set(each.choices) if isinstance(each, AnyOf) else set() for name, each in declared.base_filters.items()}
    assert {name: set(values) for name, values in FILTERS[of].items()} == known


def test_the_reference_page_is_made_from_the_grammar() -> None:
    from broker_site.client.command.reference import page

    assert read("docs/reference/command-line.md") == "\n".join(page()) + "\n"


def test_the_installed_script_is_the_command() -> None:
    assert f'broker = "{main.__module__}:{main.__name__}"' in read("pyproject.toml")
    assert (ROOT / ROOM / "__main__.py").is_file()
