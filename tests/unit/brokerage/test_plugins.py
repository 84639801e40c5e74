"""Plugins: what an installed package brings, what a broken one is told, and that configuration chooses."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.metadata import EntryPoints, distributions
from pathlib import Path

import pytest

from broker_site.foundation.gdpconfig.keys import KEYS, BadConfig
from brokerage.plugins import GROUP, check_plugins, declaring, load
from brokerage.rules.decision import policy_choice
from brokerage.rules.decision.declare import FILTERS, POLICIES, WEIGHTS, policy_for
from brokerage.rules.decision.policy_choice import NoGenerator, NoPolicy, Plugin, generator_chosen, policy_chosen, policy_named
from workqueues.splitters.choice import SPLITTERS
from workqueues.splitters.generation import STANDARD
from workqueues.splitters.generator import GENERATORS

GOOD = """
from brokerage.filters.sites import status
from brokerage.policies.generic import Generic
from brokerage.rules.decision.declare import Best, BrokeragePolicy, PendingFor, filter, policy, weight

@filter("{vo}_closed", "it is closed")
def {vo}_closed(ask, queues, config):
    "Source: a test."
    return True, {{}}

@weight("{vo}_one")
def one(ask, queues, config):
    "One."
    return 1.0

@policy(vo="{vo}", activity="{activity}")
class Own(BrokeragePolicy):
    "The test's own."
    candidates = Generic.candidates
    filters = (status, {vo}_closed)
    weights = (one,)
    select, otherwise = Best("{best}"), PendingFor("PENDING_GENERIC")
"""

JOBS = """
from workqueues.splitters.by_files import by_files
from workqueues.splitters.choice import splitter
from workqueues.splitters.generator import JobGenerator, generator

@splitter("{vo}_files")
def files(files, rules, limits, most=None, secondaries=()):
    "As ours."
    return by_files(files, rules, limits, most, secondaries)

@generator(vo="{vo}", activity="analysis")
class Jobs(JobGenerator):
    "Cut by {vo}_files."
    def splitter(self, task, dataset_type, rules):
        return "{vo}_files"
"""

Install = Callable[..., EntryPoints]


class Undone(Exception):
    """Ends the declarations of one test."""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Lay packages down as an installer does: {package: text of its module}; what they declare is forgotten after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)

    def installed(**texts: str) -> EntryPoints:
        for package, text in texts.items():
            (tmp_path / f"{package}.py").write_text(text)
            told = tmp_path / f"{package}-1.2.dist-info"
            told.mkdir()
            (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
            (told / "entry_points.txt").write_text(f"[{GROUP}]\nmain = {package}\n")
        found = [point for package in distributions(path=[str(tmp_path)]) for point in package.entry_points]
        return EntryPoints(found).select(group=GROUP)

    stack = ExitStack()
    stack.enter_context(declaring())
    yield installed
    stack.__exit__(Undone, Undone(), None)
    for name in set(sys.modules) - known:
        if name.startswith("plug_"):
            del sys.modules[name]


def good(vo: str, activity: str = "production", best: str = "BEST_GENERIC") -> str:
    return GOOD.format(vo=vo, activity=activity, best=best)


def test_what_an_installed_package_declares_is_there(install: Install) -> None:
    [plugin] = load(install(plug_lab=good("lab")))
    assert plugin == Plugin("plug_lab", "1.2", "main", "plug_lab", "", ("lab-production",), ("lab_closed",), ("lab_one",))
    assert POLICIES["lab-production"].vo == "lab"


def test_splitters_and_generators_are_brought_in_the_same_way(install: Install) -> None:
    [plugin] = load(install(plug_lab=good("lab") + JOBS.format(vo="lab")))
    assert (plugin.fault, plugin.policies) == ("", ("lab-production",))
    assert (plugin.splitters, plugin.generators) == (("lab_files",), ("lab-analysis",))
    assert GENERATORS["lab-analysis"].name == "lab-analysis"


def test_half_of_a_plugin_does_not_stay_when_its_generator_cannot_be_declared(install: Install) -> None:
    before = list(POLICIES), list(SPLITTERS), list(GENERATORS)
    misspelt = good("lab") + JOBS.format(vo="lab").replace("def splitter(self", "def spliter(self")
    [plugin] = load(install(plug_lab=misspelt))
    assert plugin.fault == "TypeError: generators have no hook spliter; there are: splitter, limits, parameters"
    assert (list(POLICIES), list(SPLITTERS), list(GENERATORS)) == before
    assert plugin.splitters == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = = 1", "SyntaxError"),
        (good("lab") + "\nraise OSError('no table')", "OSError: no table"),
        (good("lab").replace("lab_closed(", "status("), "ValueError: filter 'status' is declared twice"),
        (good("lab", best="BEST_OF_ALL"), "BadPlugin: the policy lab-production reads BEST_OF_ALL, which no component"),
        (good("lab").replace("select, otherwise =", "chosen, later ="), "AttributeError: .*select"),
    ],
    ids=["import", "division", "exit", "syntax", "half way", "name taken", "unknown key", "no choice"],
)
def test_a_broken_package_is_left_out_as_a_whole_and_keeps_no_other_out(install: Install, text: str, says: str) -> None:
    before = list(POLICIES), list(FILTERS), list(WEIGHTS), len(list(KEYS))
    broken, whole = load(install(plug_a=text, plug_b=good("mill")))
    assert re.match(says, broken.fault)
    assert str(broken) == "plugin plug_a 1.2, entry point main = plug_a"
    assert whole.policies == ("mill-production",)
    after = list(POLICIES), list(FILTERS), list(WEIGHTS), len(list(KEYS))
    assert after == ([*before[0], "mill-production"], [*before[1], "mill_closed"], [*before[2], "mill_one"], before[3])


def test_a_broken_package_is_told_by_the_system_check(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Plugin("gridlab", "0.3", "lab", "gridlab.rules", "ImportError: no wheel")
    monkeypatch.setattr(policy_choice, "PLUGINS", [broken])
    monkeypatch.setattr("brokerage.plugins.PLUGINS", [broken, Plugin("mill", "1", "mill", "mill")])
    [warning] = check_plugins()
    assert warning.id == "brokerage.W001"
    assert warning.msg == "plugin gridlab 0.3, entry point lab = gridlab.rules could not be loaded: ImportError: no wheel"


def test_the_configuration_chooses_and_without_it_a_package_changes_nothing(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_choice, "PLUGINS", load(install(plug_lab=good("lab"))))
    unset = {"POLICY_production": None}
    assert policy_chosen("lab", "production", unset) is POLICIES["production"]
    assert policy_chosen("lab", "production", {"POLICY_production": "lab-production"}) is POLICIES["lab-production"]
    assert policy_chosen("mill", "analysis", {"POLICY_analysis": "generic"}) is POLICIES["generic"]
    assert policy_for("lab", "production") is POLICIES["lab-production"]


def test_a_policy_that_cannot_be_loaded_is_refused_with_what_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Plugin("gridlab", "0.3", "lab", "gridlab.rules", "ImportError: no wheel")
    monkeypatch.setattr(policy_choice, "PLUGINS", [broken])
    with pytest.raises(NoPolicy) as refused:
        policy_chosen("lab", "production", {"POLICY_production": "lab-production"})
    assert str(refused.value) == (
        "POLICY_production of VO 'lab': there is no policy 'lab-production'; there are: analysis, generic, production; "
        "the plugin gridlab 0.3, entry point lab = gridlab.rules could not be loaded: ImportError: no wheel"
    )
    with pytest.raises(NoPolicy, match="no wheel"):
        policy_named("lab-production")


def test_the_configuration_chooses_the_generator_and_without_it_a_package_changes_nothing(install: Install) -> None:
    load(install(plug_lab=JOBS.format(vo="lab")))
    assert generator_chosen("lab", "analysis", {"GENERATOR_analysis": None}) is STANDARD
    assert generator_chosen("lab", "analysis", {"GENERATOR_production": "lab-analysis"}) is STANDARD
    assert generator_chosen("lab", "analysis", {"GENERATOR_analysis": "lab-analysis"}) is GENERATORS["lab-analysis"]
    assert KEYS.check("core", "GENERATOR_production", "lab-analysis", vo="lab") == "lab-analysis"


def test_a_generator_that_cannot_be_loaded_is_refused_with_what_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Plugin("gridlab", "0.3", "lab", "gridlab.rules", "ImportError: no wheel")
    monkeypatch.setattr(policy_choice, "PLUGINS", [broken])
    why = (
        "there is no generator 'lab-analysis'; there are: standard; "
        "the plugin gridlab 0.3, entry point lab = gridlab.rules could not be loaded: ImportError: no wheel"
    )
    with pytest.raises(NoGenerator) as refused:
        generator_chosen("lab", "analysis", {"GENERATOR_analysis": "lab-analysis"})
    assert str(refused.value) == f"GENERATOR_analysis of VO 'lab': {why}"
    with pytest.raises(BadConfig, match="no wheel"):
        KEYS.check("core", "GENERATOR_analysis", "lab-analysis", vo="lab")


@pytest.mark.parametrize(
    ("activity", "name", "says"),
    [
        ("production", "prodction", "there is no policy 'prodction'; there are: analysis, generic, production"),
        ("production", "nucleus", "'nucleus' does not choose queues"),
        ("nucleus", "production", "'production' does not choose nuclei; those that do: nucleus"),
    ],
)
def test_who_configures_a_policy_that_cannot_decide_is_told_those_that_can(activity: str, name: str, says: str) -> None:
    with pytest.raises(BadConfig, match=says):
        KEYS.check("core", f"POLICY_{activity}", name, vo="lab")
    # What is stored already is read as it is: its reader refuses it with the reason, instead of deciding by another policy.
    assert KEYS.get("core", f"POLICY_{activity}").read(name) == name


def test_every_activity_can_be_given_another_policy() -> None:
    assert KEYS.check("core", "POLICY_production", "generic", vo="lab") == "generic"
    assert KEYS.check("core", "POLICY_nucleus", "nucleus") == "nucleus"
    assert KEYS.check("core", "POLICY_analysis", "unset") == "unset"
