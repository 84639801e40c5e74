"""How long a command line may be: Linux starts no other one."""

from __future__ import annotations

import shlex
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import parameters
from workqueues.rules.jobs import command_length
from workqueues.rules.jobs.command_length import LONGEST, LONGEST_ARGUMENT, too_long
from workqueues.rules.refine.validate import validate


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a" * LONGEST_ARGUMENT, ""),
        ("a" * (LONGEST_ARGUMENT + 1), "an argument of the command line has 131072 bytes, at most 131071"),
        ("'" + "a " * 70_000 + "'", "an argument of the command line has 140002 bytes, at most 131071"),
        ("\u00e9" * 70_000, "an argument of the command line has 140000 bytes, at most 131071"),
        ("a " * (LONGEST // 2), ""),
        ("a " * (LONGEST // 2) + "b", "the command line has 1000001 bytes, at most 1000000"),
    ],
)
def test_one_argument_and_the_whole_have_limits(text: str, words: str) -> None:
    assert too_long(text) == words


def test_what_is_just_within_the_limits_is_started() -> None:
    longest = "b" * LONGEST_ARGUMENT
    line = f"{longest} {'a' * 99} " * 2
    assert too_long(line) == ""
    assert subprocess.run(["/bin/true", *shlex.split(line)], check=False).returncode == 0
    with pytest.raises(OSError, match="too long"):
        subprocess.run(["/bin/true", longest + "b"], check=False)


@given(st.text(alphabet="ab \\'\"", max_size=40))
def test_no_argument_that_a_shell_would_make_is_longer_than_the_one_found(text: str) -> None:
    try:
        arguments = shlex.split(text)
    except ValueError:
        return
    found = [len(match[0]) for match in command_length._ARGUMENT.finditer(text)]
    assert max(map(len, arguments), default=0) <= max(found, default=0)


@pytest.mark.parametrize("part", ["'", '"', "\\", "'a", '"\\', "a'b\"c "])
def test_no_text_takes_long_to_be_measured(part: str) -> None:
    began = time.process_time()
    too_long(part * (LONGEST // len(part)))
    assert time.process_time() - began < 2


def test_a_task_with_an_argument_that_no_system_would_start_is_refused_with_the_field() -> None:
    items = [{"type": "constant", "value": "x" * 20_000, "padding": False} for _ in range(7)]
    task = parameters()
    task["jobParameters"] = [*task["jobParameters"], *items]
    (problem,) = validate(task)
    assert (problem.field, problem.rule) == ("jobParameters", "length")
    assert problem.message.startswith("an argument of the command line has 140000 bytes, at most 131071")
