"""The package in `examples/plugins`, really installed: found, chosen by configuration, decides; broken, told and refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker_site.roof.embedded.instance import ROOT
from tests.plugin_package import SOURCE, install

CHOSEN = json.loads((SOURCE / "decide" / "config.json").read_text())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the package is installed."""
    return install(tmp_path_factory.mktemp("source") / "plugins", tmp_path_factory.mktemp("site"))


def run(site: Path | None, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the real system, in a process that sees the installed package or does not."""
    env = {name: value for name, value in os.environ.items() if name not in ("DJANGO_SETTINGS_MODULE", "PYTHONPATH")}
    if site is not None:
        env["PYTHONPATH"] = str(site)
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)


def manage(site: Path | None, *words: str) -> subprocess.CompletedProcess[str]:
    return run(site, "manage.py", *words)


@pytest.fixture
def decide(tmp_path: Path) -> Any:
    """Decide on the example of the package, with a configuration."""

    def decided(site: Path | None, config: dict[str, Any], *more: str) -> subprocess.CompletedProcess[str]:
        chosen = tmp_path / "config.json"
        chosen.write_text(json.dumps(config))
        task, grid = SOURCE / "decide" / "task.json", SOURCE / "decide" / "grid.json"
        return manage(site, "decide", "--task", str(task), "--grid", str(grid), "--config", str(chosen), *more)

    return decided


def test_the_configuration_chooses_it_and_it_decides(site: Path, decide: Any) -> None:
    done = decide(site, CHOSEN)
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
        "LAB_SMALL": "a job needs 12000 MB, a slot gives 4000",
    }


def test_installed_but_not_chosen_it_changes_nothing(site: Path, decide: Any) -> None:
    assert json.loads(decide(site, {}).stdout)["policy"] == "production"


def test_its_keys_are_configured_like_ours(site: Path, decide: Any) -> None:
    one = json.loads(decide(site, {"lab_jobbroker": {"LAB_BEST": 1}}, "--policy", "lab-production").stdout)
    assert len(one["chosen"]) == 1
    refused = decide(site, CHOSEN | {"lab_jobbroker": {"LAB_BEST": 0}})
    assert refused.returncode != 0
    assert "LAB_BEST: 0 is out of range" in refused.stderr


def test_the_commands_know_it(site: Path) -> None:
    assert "| -lab_busy | temporary | lab_quiet_enough |" in manage(site, "criteria", "lab-production").stdout
    conforms = manage(site, "conformance", "--policy", "lab-production", "--trials", "60")
    assert (conforms.returncode, conforms.stdout.strip()) == (0, "policy lab-production: 7 checks passed, 0 failed")
    cuts = manage(site, "conformance", "--splitter", "lab_runs", "--trials", "60")
    assert (cuts.returncode, cuts.stdout.strip()) == (0, "splitter lab_runs: 5 checks passed, 0 failed")
    assert "brokerage.W001" not in manage(site, "check").stderr


def test_its_own_tests_pass(site: Path) -> None:
    done = run(site, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", str(SOURCE / "tests"))
    assert done.returncode == 0, done.stdout


def test_its_generator_can_be_configured_where_it_is_installed(site: Path, decide: Any) -> None:
    chosen = {"core": {"GENERATOR_production": "lab-production"}}
    assert decide(site, chosen).returncode == 0
    refused = decide(None, chosen)
    assert refused.returncode != 0
    assert "there is no generator 'lab-production'; there are: standard" in refused.stderr


def test_not_installed_it_is_refused_with_those_that_are(decide: Any) -> None:
    refused = decide(None, CHOSEN)
    assert refused.returncode != 0
    assert "there is no policy 'lab-production'; there are: analysis, generic, production" in refused.stderr


def test_broken_it_is_told_and_only_its_own_use_is_refused(site: Path, tmp_path: Path, decide: Any) -> None:
    broken = tmp_path / "site"
    shutil.copytree(site, broken)
    with (broken / "gridbroker_lab" / "policy.py").open("a") as module:
        module.write("\nraise OSError('the table of the lab is not there')\n")
    why = "could not be loaded: OSError: the table of the lab is not there"
    told = f"plugin gridbroker-lab 1.0.0, entry point lab = gridbroker_lab {why}"
    checked = manage(broken, "check")
    assert (checked.returncode, "brokerage.W001" in checked.stderr, told in checked.stderr) == (0, True, True)
    refused = decide(broken, CHOSEN)
    assert refused.returncode != 0
    assert told in refused.stderr
    assert json.loads(decide(broken, {}).stdout)["policy"] == "production"
