"""What tells a reader where to go on: docstrings of agents, help of commands, the table of agents."""

from __future__ import annotations

import ast

import pytest
from django.core.management import get_commands, load_command_class

from broker_site.foundation.agency.duties import AGENTS
from tests.arch.source import APPS, Module, called, product

SAYS = ("takes", "leaves", "next")


def _agents() -> dict[str, Module]:
    """Agent -> the module that declares it."""
    found = {}
    for module in product():
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    if isinstance(decorator, ast.Call) and called(decorator) == "agent":
                        found[ast.literal_eval(decorator.args[0])] = module
    return found


OURS = sorted(name for name, app in get_commands().items() if app.partition(".")[0] in APPS)


def test_every_agent_stands_in_the_table_and_in_a_room_for_agents() -> None:
    agents = _agents()
    assert set(AGENTS) == set(agents)
    assert all("/agents/" in module.path for module in agents.values())


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_an_agent_says_what_it_takes_what_it_leaves_and_who_is_next(name: str) -> None:
    said = " ".join((ast.get_docstring(_agents()[name].tree) or "").lower().split())
    assert said.startswith(f"agent {name}.")
    assert [word for word in SAYS if word not in said] == []


@pytest.mark.parametrize("name", OURS)
def test_a_command_says_what_it_is_for(name: str) -> None:
    command = load_command_class(get_commands()[name], name)
    assert command.help.strip()
    assert command.help.strip().endswith(".")
    unsaid = [a.dest for a in command.create_parser("manage.py", name)._actions if not a.help and a.metavar is None]
    assert not [dest for dest in unsaid if dest != "verb"]


def test_every_module_says_what_lives_there() -> None:
    silent = [m.path for m in product() if m.text.strip() and not ast.get_docstring(m.tree)]
    assert not silent, "\n".join(silent)
