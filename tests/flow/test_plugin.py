"""A second VO's policy from a package of its own, in the running system: chosen by configuration it decides, gone, tasks wait."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import EntryPoints, distributions
from pathlib import Path
from typing import Any

import pytest

from broker_site.foundation.gdpconfig import forget, set_override
from brokerage.models import Decision, Job
from brokerage.plugins import GROUP, declaring, load
from brokerage.queries.job_document import job_document
from brokerage.queries.what_if import NothingToDecide, what_if
from brokerage.rules.decision import policy_choice
from brokerage.rules.decision.declare import POLICIES, Weight
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import run_agents
from tests.plugin_package import install
from workqueues.models import CatalogueFile, File, Task
from workqueues.splitters import generation
from workqueues.splitters.choice import SPLITTERS
from workqueues.splitters.generator import GENERATORS, GeneratorTask, JobGenerator, generator
from workqueues.splitters.protocol import JobLimits

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
    assert "the only queue does not pass now; the closest is ALPHA" in task.error_dialog


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


def by_runs() -> None:
    set_override("core", "GENERATOR_analysis", "lab-production", vo="lab", who="ann", why="a job a run")


def of_runs(*lfns: str) -> None:
    """The closed dataset lab.data of these files."""
    dataset = catalogue_dataset("lab.data", len(lfns), vo="lab")
    for file, lfn in zip(CatalogueFile.objects.filter(dataset=dataset).order_by("id"), lfns, strict=True):
        CatalogueFile.objects.filter(id=file.id).update(lfn=lfn)


def generated(**more: object) -> list[tuple[list[str], str]]:
    """The jobs that a task of the lab on lab.data has after the agents have been round: their input files and parameters."""
    grid("ALPHA")
    submitted(reading("t", "lab.data", vo="lab", **more))
    run_agents()
    documents = [job_document(job.id) for job in Job.objects.order_by("id")]
    return [([each["lfn"] for each in document["inputs"]], document["parameters"]) for document in documents]


RUNS = ("lab.run0007.left", "lab.run0007.mid", "lab.run0007.right", "lab.run0008.left", "lab.run0008.right", "lab.timing")


@pytest.mark.usefixtures("plugin")
def test_chosen_by_configuration_its_generator_makes_a_job_for_each_run_and_tells_it_the_run() -> None:
    by_runs()
    of_runs(*RUNS)
    assert generated() == [
        (list(RUNS[:3]), "--in lab.run0007.left,lab.run0007.mid,lab.run0007.right --out=t.OUT.000001.txt --run 7"),
        (list(RUNS[3:5]), "--in lab.run0008.left,lab.run0008.right --out=t.OUT.000002.txt --run 8"),
        ([RUNS[5]], "--in lab.timing --out=t.OUT.000003.txt"),
    ]


@pytest.mark.usefixtures("plugin")
def test_installed_but_not_chosen_it_makes_no_jobs() -> None:
    of_runs(*RUNS)
    assert [names for names, _ in generated()] == [list(RUNS[:2]), list(RUNS[2:4]), list(RUNS[4:])]


@pytest.mark.usefixtures("plugin")
def test_a_generator_says_how_much_a_job_takes_where_the_task_does_not() -> None:
    @generator(vo="lab", activity="small")
    class Small(JobGenerator):
        def limits(self, task: GeneratorTask, limits: JobLimits) -> JobLimits:
            return replace(limits, max_files=int(task.parameters["nFiles"]) // 2)

    set_override("core", "GENERATOR_analysis", "lab-small", vo="lab", who="ann", why="small jobs")
    of_runs(*RUNS)
    assert [len(names) for names, _ in generated(nFilesPerJob=None, nFiles=4)] == [2, 2]


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("planted", "said"),
    [
        (lambda split: replace(split, left=0, jobs=split.jobs[1:]), "the splitter lab_runs: job 0 begins at piece 3"),
        (lambda split: None, "the splitter lab_runs: gives NoneType, not a Split"),
    ],
    ids=["files lost", "nothing"],
)
def test_a_bad_split_makes_its_task_wait_with_the_fault_and_no_other(
    planted: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_runs()
    of_runs(*RUNS)
    good = SPLITTERS["lab_runs"]
    broken = replace(good, cut=lambda *given: planted(good.cut(*given)))
    monkeypatch.setattr(generation, "SPLITTERS", {**SPLITTERS, "lab_runs": broken})
    submitted(parameters("other", nEvents=20, nEventsPerJob=10))
    assert [names for names, _ in generated()] == [[], []]
    task, other = Task.objects.get(task_name="t"), Task.objects.get(task_name="other")
    assert (task.status, other.status, other.error_dialog) == ("pending", "running", "")
    assert said in task.error_dialog
    assert not File.objects.filter(dataset__dataset_name="lab.data", status="picked").exists()


@pytest.mark.usefixtures("plugin")
def test_a_generator_that_fails_on_a_task_sets_it_aside_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise OSError("the table of runs is not there")

    by_runs()
    of_runs(*RUNS)
    monkeypatch.setattr(type(GENERATORS["lab-production"]), "parameters", broken)
    submitted(parameters("other", nEvents=20, nEventsPerJob=10))
    assert [names for names, _ in generated()] == [[], []]
    task, other = Task.objects.get(task_name="t"), Task.objects.get(task_name="other")
    assert (task.status, other.status) == ("ready", "running")
    assert "agent generate failed on this task: OSError: the table of runs is not there" in task.error_dialog


def test_without_its_generator_tasks_of_the_vo_wait_with_what_is_missing(plugin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    by_runs()
    of_runs(*RUNS)
    left = {name: each for name, each in GENERATORS.items() if name != "lab-production"}
    monkeypatch.setattr(policy_choice, "PLUGINS", [policy_choice.Plugin("gridbroker-lab", "1.0.0", "lab", "x", "ImportError: y")])
    monkeypatch.setattr(policy_choice, "GENERATORS", left)
    assert generated() == []
    task = Task.objects.get()
    assert task.status == "pending"
    assert "GENERATOR_analysis of VO 'lab': there is no generator 'lab-production'; there are: standard" in task.error_dialog
    assert "the plugin gridbroker-lab 1.0.0, entry point lab = x could not be loaded: ImportError: y" in task.error_dialog
    with pytest.raises(NothingToDecide, match="there is no generator 'lab-production'"):
        what_if(task)
