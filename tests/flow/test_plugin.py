"""A second VO's policy from a package of its own, in the running system: chosen by configuration it decides, gone, tasks wait."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import EntryPoints, distributions
from pathlib import Path

import pytest

from broker_site.gdpconfig import forget, set_override
from brokerage.models import Decision, Job
from brokerage.plugins import GROUP, declaring, load
from brokerage.rules import policy_choice
from brokerage.rules.declare import POLICIES, Weight
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from tests.plugin_package import install
from workqueues.models import Task

pytestmark = pytest.mark.django_db


class Undone(Exception):
    """Ends what the test declares."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the package is installed."""
    return install(tmp_path_factory.mktemp("source") / "plugins", tmp_path_factory.mktemp("site"))


@pytest.fixture
def plugin(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, loaded as when the process begins; forgotten after the test."""
    monkeypatch.syspath_prepend(str(site))
    found = EntryPoints(point for package in distributions(path=[str(site)]) for point in package.entry_points)
    stack = ExitStack()
    stack.enter_context(declaring())
    monkeypatch.setattr(policy_choice, "PLUGINS", load(found.select(group=GROUP)))
    assert [plugin.fault for plugin in policy_choice.PLUGINS] == [""]
    yield
    stack.__exit__(Undone, Undone(), None)
    forget()
    for name in [name for name in sys.modules if name.partition(".")[0] == "gridbroker_lab"]:
        del sys.modules[name]


def choose() -> None:
    """For tasks of users, which those of `parameters` are; a policy may serve any activity that chooses queues."""
    set_override("core", "POLICY_analysis", "lab-production", vo="lab", who="ann", why="our own rules")


def brokered(**queue: object) -> Task:
    """A task of the VO lab after the agents have been round."""
    (alpha,) = grid("ALPHA")
    alpha.attributes |= queue
    alpha.save()
    task = submitted(parameters(vo="lab", nEvents=20, nEventsPerJob=10))
    run_agents()
    task.refresh_from_db()
    return task


def policies() -> set[str]:
    return set(Decision.objects.exclude(policy="nucleus").values_list("policy", flat=True))


@pytest.mark.usefixtures("plugin")
def test_chosen_by_configuration_it_decides_where_the_jobs_of_its_vo_go() -> None:
    choose()
    task = brokered(pledgedcpu=100)
    assert (task.status, policies()) == ("running", {"lab-production"}), task.error_dialog
    assert Job.objects.count() == 2


@pytest.mark.usefixtures("plugin")
def test_its_own_reason_is_what_the_task_waits_with() -> None:
    choose()
    task = brokered()
    assert (task.status, policies()) == ("pending", {"lab-production"})
    assert "0 of 1 queues passed; closest is ALPHA" in task.error_dialog


@pytest.mark.usefixtures("plugin")
def test_installed_but_not_chosen_it_decides_nothing() -> None:
    brokered(pledgedcpu=100)
    assert policies() == {"analysis"}


def test_gone_the_tasks_of_the_vo_wait_with_what_is_missing(plugin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    choose()
    monkeypatch.setattr(policy_choice, "PLUGINS", [policy_choice.Plugin("gridbroker-lab", "1.0.0", "lab", "x", "ImportError: y")])
    monkeypatch.setattr(policy_choice, "POLICIES", {name: p for name, p in POLICIES.items() if name != "lab-production"})
    task = brokered(pledgedcpu=100)
    assert (task.status, policies()) == ("pending", set())
    assert "there is no policy 'lab-production'" in task.error_dialog
    assert "the plugin gridbroker-lab 1.0.0, entry point lab = x could not be loaded: ImportError: y" in task.error_dialog


@pytest.mark.usefixtures("plugin")
def test_a_rule_that_fails_at_a_decision_sets_that_task_aside_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> float:
        raise OSError("the table of the lab is not there")

    choose()
    monkeypatch.setattr(POLICIES["lab-production"], "weights", (Weight("lab_broken", (), "Fails.", broken),))
    other = submitted(parameters("other", nEvents=20, nEventsPerJob=10))
    task = brokered(pledgedcpu=100)
    other.refresh_from_db()
    assert (other.status, task.status) == ("running", "ready")
    assert "agent generate failed on this task: OSError: the table of the lab is not there" in task.error_dialog


@pytest.mark.usefixtures("plugin")
def test_a_decision_that_cannot_be_stored_holds_up_no_other_task(monkeypatch: pytest.MonkeyPatch) -> None:
    choose()
    monkeypatch.setattr(POLICIES["lab-production"], "name", "x" * 100)
    first = submitted(parameters("first", vo="lab", nEvents=20, nEventsPerJob=10))
    other = submitted(parameters("other", nEvents=20, nEventsPerJob=10))
    brokered()
    first.refresh_from_db()
    other.refresh_from_db()
    assert (first.status, other.status, other.error_dialog) == ("pending", "running", "")
    assert "analysis" in policies()
