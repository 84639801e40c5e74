"""The package in `examples/plugins`, really installed: found, chosen by configuration, decides; broken, told and refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from broker_site.roof.embedded.instance import ROOT
from tests.plugin_package import SOURCE, install

CHOSEN = json.loads((SOURCE / "decide" / "config.json").read_text())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the package is installed."""
    return install(tmp_path_factory.mktemp("source") / "plugins", tmp_path_factory.mktemp("site"))


def environment(site: Path | None) -> dict[str, str]:
    """That of a process that sees the installed package or does not."""
    env = {name: value for name, value in os.environ.items() if name not in ("DJANGO_SETTINGS_MODULE", "PYTHONPATH")}
    return env | ({"PYTHONPATH": str(site)} if site is not None else {})


class Manage:
    """`manage.py` of the real system in a process that runs one command after the other: its beginning takes most of the time."""

    LOOP = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
import manage
for line in sys.stdin:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            code = manage.main(["manage.py", *json.loads(line)])
        except SystemExit as ended:
            code = ended.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""

    def __init__(self, site: Path | None) -> None:
        command = [sys.executable, "-c", self.LOOP]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment(site), text=True, stdin=PIPE, stdout=PIPE)

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        assert self.process.stdin and self.process.stdout
        print(json.dumps(words), file=self.process.stdin, flush=True)
        code, out, err = json.loads(self.process.stdout.readline())
        return subprocess.CompletedProcess(words, code, out, err)

    def decide(self, folder: Path, config: dict[str, Any], *more: str) -> subprocess.CompletedProcess[str]:
        """Decide on the example of the package, with a configuration."""
        chosen = folder / "config.json"
        chosen.write_text(json.dumps(config))
        task, grid = SOURCE / "decide" / "task.json", SOURCE / "decide" / "grid.json"
        return self("decide", "--task", str(task), "--grid", str(grid), "--config", str(chosen), *more)

    def __enter__(self) -> Manage:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # the loop ends with its input


@pytest.fixture(scope="module")
def manage(site: Path) -> Iterator[Manage]:
    """Sees the package."""
    with Manage(site) as made:
        yield made


@pytest.fixture(scope="module")
def without() -> Iterator[Manage]:
    """Does not see the package."""
    with Manage(None) as made:
        yield made


def test_the_configuration_chooses_it_and_it_decides(manage: Manage, tmp_path: Path) -> None:
    done = manage.decide(tmp_path, CHOSEN)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["policy"] == "lab-production"
    assert [(c["queue"], c["factors"]) for c in answer["chosen"]] == [
        ("LAB_NEW", {"lab_power_left": 13.5}),
        ("LAB_OLD", {"lab_power_left": 10.0}),
    ]
    assert {s["queue"]: s["reason"] for s in answer["skipped"]} == {
        "LAB_FULL": "720 of its cores are busy, fewer than 64 are wanted for interactive work",
        "LAB_GUEST": "cannot be computed: pledgedcpu is 0",
        "LAB_SMALL": "a job needs 12000 MB, a slot gives 4000 MB",
    }


def test_installed_but_not_chosen_it_changes_nothing(manage: Manage, tmp_path: Path) -> None:
    assert json.loads(manage.decide(tmp_path, {}).stdout)["policy"] == "production"


def test_its_keys_are_configured_like_ours(manage: Manage, tmp_path: Path) -> None:
    one = json.loads(manage.decide(tmp_path, {"lab_jobbroker": {"LAB_BEST": 1}}, "--policy", "lab-production").stdout)
    assert len(one["chosen"]) == 1
    refused = manage.decide(tmp_path, CHOSEN | {"lab_jobbroker": {"LAB_BEST": 0}})
    assert refused.returncode != 0
    assert "LAB_BEST: 0 is out of range" in refused.stderr


def test_the_commands_know_it(manage: Manage) -> None:
    assert "| -lab_busy | temporary | lab_quiet_enough |" in manage("criteria", "lab-production").stdout
    conforms = manage("conformance", "--policy", "lab-production", "--trials", "60")
    assert (conforms.returncode, conforms.stdout.strip()) == (0, "policy lab-production: 7 checks passed, 0 failed")
    cuts = manage("conformance", "--splitter", "lab_runs", "--trials", "60")
    assert (cuts.returncode, cuts.stdout.strip()) == (0, "splitter lab_runs: 5 checks passed, 0 failed")
    assert "brokerage.W001" not in manage("check").stderr


def test_its_own_tests_pass(site: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", str(SOURCE / "tests")]
    done = subprocess.run(command, cwd=ROOT, env=environment(site), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_its_generator_can_be_configured_where_it_is_installed(manage: Manage, without: Manage, tmp_path: Path) -> None:
    chosen = {"core": {"GENERATOR_production": "lab-production"}}
    assert manage.decide(tmp_path, chosen).returncode == 0
    refused = without.decide(tmp_path, chosen)
    assert refused.returncode != 0
    assert "there is no generator 'lab-production'; there are: standard" in refused.stderr


def test_not_installed_it_is_refused_with_those_that_are(without: Manage, tmp_path: Path) -> None:
    refused = without.decide(tmp_path, CHOSEN)
    assert refused.returncode != 0
    assert "there is no policy 'lab-production'; there are: analysis, generic, production" in refused.stderr


def test_broken_it_is_told_and_only_its_own_use_is_refused(site: Path, tmp_path: Path) -> None:
    broken = tmp_path / "site"
    shutil.copytree(site, broken)
    with (broken / "gridbroker_lab" / "policy.py").open("a") as module:
        module.write("\nraise OSError('the table of the lab is not there')\n")
    why = "could not be loaded: OSError: the table of the lab is not there"
    told = f"plugin gridbroker-lab 1.0.0, entry point lab = gridbroker_lab {why}"
    with Manage(broken) as manage:
        checked = manage("check")
        assert (checked.returncode, "brokerage.W001" in checked.stderr, told in checked.stderr) == (0, True, True)
        refused = manage.decide(tmp_path, CHOSEN)
        assert refused.returncode != 0
        assert told in refused.stderr
        assert json.loads(manage.decide(tmp_path, {}).stdout)["policy"] == "production"
