"""What other packages import: the public rooms have all that plugins need, and the example needs nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

import pytest

from brokerage.plugin_api import standard_filters, standard_weights
from brokerage.rules.decision.declare import FILTERS, WEIGHTS
from tests.arch.source import ROOT

PUBLIC = ("broker_site.plugin_api", "brokerage.plugin_api", "workqueues.plugin_api")
OURS = ("broker_site", "brokerage", "workqueues", "monitoring")


def imports_of_ours(source: str) -> set[str]:
    """The modules of GridBroker that a source imports from."""
    nodes = ast.walk(ast.parse(source))
    modules = {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)}
    return {module for module in modules if module.split(".")[0] in OURS}


def public_names(room: ModuleType) -> set[str]:
    """What a public room offers."""
    return {name for name in vars(room) if not name.startswith("_")}


@pytest.mark.parametrize("file", sorted((ROOT / "examples/plugins").rglob("*.py")), ids=lambda file: file.name)
def test_the_example_imports_only_public_rooms(file: Path) -> None:
    assert not [m for m in imports_of_ours(file.read_text()) if not m.startswith(PUBLIC)]


def test_the_page_on_plugins_shows_only_public_rooms() -> None:
    page = (ROOT / "docs/how-to/plugins.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert all(room in page for room in PUBLIC)
    assert not [m for block in blocks for m in imports_of_ours(block) if not m.startswith(PUBLIC)]


def test_every_filter_and_weight_of_ours_is_public() -> None:
    ours = {name for name, rule in FILTERS.items() if rule.judge.__module__.startswith("brokerage.filters.")}
    factors = {w.factor.__name__ for w in WEIGHTS.values() if w.factor.__module__.startswith("brokerage.weights.")}
    assert public_names(standard_filters) == ours
    assert public_names(standard_weights) == factors
