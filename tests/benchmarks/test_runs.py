"""Every benchmark runs with each of its options, at sizes that say nothing about speed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import ALL, NAMES
from benchmarks.server import Bench
from broker_site.roof.embedded import Services, attached

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_REFERENCE = {"cycle", "agents", "pages"}

TINY = [
    run.split()
    for run in (
        "dispatch --waiting 60 --task-queues 2 --clients 1 --kinds simple --rounds 1",
        "dispatch --waiting 300 --task-queues 60 --clients 2 --queues 3 --kinds simple --late --rounds 1",
        "dispatch --waiting 200 --snapshot --rounds 1",
        "dispatch --waiting 400 --limits --rounds 1",
        "dispatch --waiting 60 --cycles 40",
        "dispatch --waiting 100 --http --jobs 2 --rounds 1",
        "reports --jobs 40 --clients 2 --rounds 1",
        "reports --jobs 40 --http --together 4 --rounds 1",
        "cycle --tasks 5 --queues 8 --jobs 50",
        "agents --tasks 40 --jobs 400",
        "generation --files 50 --rounds 1",
        "brokerage --queues 20 --rounds 1",
        "flow --tasks 2 --jobs 8 --pilots 4 --run 0.01 --finished 20 --rounds 1",
        "transfers --requests 20 --streams 2 --rounds 1",
        "transfers --size 1 --rounds 1",
        "pages --jobs 200 --times 2",
        "transfers --requests 20 --hung --rounds 1",
        "transfers --open 3000 --rounds 1",
        "tree --children 4 --elements 8000 --turns 1 --rounds 1",
    )
]
PROGRAM = """
import json, sys
from benchmarks.__main__ import main, run_all
from benchmarks.server import shared_tables

if __name__ == "__main__":
    *runs, last = json.loads(sys.argv[1])
    with shared_tables():
        for arguments in runs:
            main(arguments)
            print("end of the run")
        sys.exit(run_all([last]))
"""
"""The runs share a process, since starting one takes longer than a tiny run; the last is run as `make bench` runs each."""


def parser_of(name: str) -> ArgumentParser:
    """The options of one benchmark."""
    parser = ArgumentParser(add_help=False)
    NAMES[name].add_arguments(parser)
    return parser


def options_of(parser: ArgumentParser) -> dict[str, str]:
    """The names of the options, and of what is read from them."""
    return {name: action.dest for action in parser._actions for name in action.option_strings}


def test_every_option_of_every_benchmark_is_among_the_tiny_runs() -> None:
    tried = {(name, word) for name, *words in TINY for word in words if word.startswith("--")}
    tried |= {("pages", option) for option in ("--keep", "--reuse", "--only")}  # below
    assert {(name, option) for name in NAMES for option in options_of(parser_of(name))} == tried
    assert {name for name, *_ in TINY} == set(NAMES)


def test_make_bench_runs_every_benchmark_with_options_that_it_has() -> None:
    assert {name for name, *_ in ALL} == set(NAMES)
    for name, *words in ALL:
        parser_of(name).parse_args(words)


def test_every_benchmark_says_its_figures_and_sizes_last(own_database: dict[str, str]) -> None:
    command = [sys.executable, "-c", PROGRAM, json.dumps(TINY)]
    ran = subprocess.run(command, cwd=ROOT, env=own_database, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for (name, *words), lines in zip(TINY, ran.stdout.split("end of the run"), strict=True):
        *_, last = map(json.loads, lines.strip().splitlines())
        assert faults(name, words, last) == [], last


@pytest.mark.servers
def test_a_benchmark_starts_servers_of_its_own_where_none_are_named() -> None:
    unset = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    command = [sys.executable, "-m", "benchmarks", "dispatch", "--waiting", "60", "--clients", "1", "--rounds", "1"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.long
@pytest.mark.servers
def test_a_filled_database_is_kept_and_asked_again(tmp_path: Path) -> None:
    unset = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
    environment = {name: value for name, value in os.environ.items() if name not in unset}

    def asked(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "benchmarks", "pages", "--times", "2", "--only", "home", *options]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)

    kept = asked("--jobs", "200", "--keep", str(tmp_path / "kept"))
    assert kept.returncode == 0, kept.stderr
    again = asked("--reuse", str(tmp_path / "kept"))
    assert again.returncode == 0, again.stderr
    first, second = (json.loads(ran.stdout.strip().splitlines()[-1]) for ran in (kept, again))
    assert {name: second[name] for name in ("jobs", "fill_s", "of")} == {"jobs": 200, "fill_s": first["fill_s"], "of": 2}
    (tmp_path / "empty").mkdir()
    nothing = asked("--reuse", str(tmp_path / "empty"))
    assert nothing.returncode != 0
    assert "no database that was filled to the end" in nothing.stderr


@pytest.mark.long
@pytest.mark.parametrize("arguments", ALL, ids=" ".join)
def test_every_benchmark_ends_at_size(arguments: tuple[str, ...], own_database: dict[str, str]) -> None:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    ran = subprocess.run(command, cwd=ROOT, env=own_database, capture_output=True, text=True, timeout=3000)
    assert ran.returncode == 0, ran.stderr
    name, *words = arguments
    *_, last = map(json.loads, ran.stdout.strip().splitlines())
    assert faults(name, words, last) == [], last


def faults(name: str, words: list[str], line: dict[str, Any]) -> list[str]:
    """What the last line of a run lacks."""
    parser = parser_of(name)
    wanted = vars(parser.parse_args(words))
    given = [dest for option, dest in options_of(parser).items() if option in words]
    found = [f"{dest} is {line.get(dest)!r}" for dest in given if line.get(dest) != wanted[dest]]
    if line.get("name") != name:
        found.append(f"name is {line.get('name')!r}")
    if not (isinstance(line.get("unit"), str) and line["unit"]):
        found.append("no unit")
    for figure in ("ours", "reference", "ratio"):
        value = line[figure]
        if figure != "ours" and name in WITHOUT_REFERENCE:
            found += [f"{figure} is {value!r} without a reference"] if value is not None else []
        elif not (isinstance(value, int | float) and value > 0):
            found.append(f"{figure} is {value!r}")
    return found


def test_a_private_server_is_brought_to_rest_and_watched(services: Services) -> None:
    with attached("test") as instance:
        if instance.postgres is None:
            pytest.skip("DATABASE_URL names a server that is not ours to watch")
        server = Bench(instance, services.database_url)
        server.settle()
        assert (server.cpu_s() or 0) > 0
