"""The table of commands: its rows fit the machine of tasks, and what a task keeps of a command tells its options again."""

from __future__ import annotations

import pytest

from workqueues.rules.task.commands import COMMANDS, Command
from workqueues.states import TASK

OF_THE_FIELD = (
    "kill", "finish", "retry", "incexec", "reload_input", "reassign", "pause", "resume", "avalanche", "release", "reactivate",
)  # fmt: skip
"""Commands that the facts name (2.3 and 2.4), built or not."""


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_leads_from_each_state_that_takes_it_to_its_target(command: Command) -> None:
    assert command.states
    if command.target:
        assert set(command.states) <= set(TASK.accepting(command.event))
        assert all(TASK.allows(state, command.target) for state in command.states)
    else:
        assert set(command.states) <= {"paused", "throttled"}, "these keep the state to which they go back"
    assert command.target not in command.states


def test_no_event_of_the_machine_has_the_name_of_a_command() -> None:
    assert not {t.event for t in TASK.transitions} & {*OF_THE_FIELD, *COMMANDS}


def test_the_states_that_take_a_command_are_those_of_the_facts() -> None:
    ending = {"prepared", "passed", "tobroken", "aborting", *TASK.final}
    assert set(COMMANDS["kill"].states) == set(TASK.states) - ending
    assert set(COMMANDS["finish"].states) == set(TASK.states) - ending - {"finishing"}
    assert set(COMMANDS["pause"].states) == set(TASK.states) - {*TASK.final, *TASK.commanded, "paused"}
    assert set(COMMANDS["resume"].states) == {"paused", "throttled"}
    assert set(COMMANDS["retry"].states) == {"finished", "failed", "aborted", "exhausted"}
    for name in ("incexec", "reload_input"):
        assert set(COMMANDS[name].states) == {"finished", "failed", "aborted", "exhausted", "done"}


def test_names_of_admin_actions_are_given_once() -> None:
    names = [action.name for command in COMMANDS.values() for action in command.actions]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "options", "comment", "kept"),
    [
        ("kill", {}, "", ""),
        ("kill", {}, "wrong input", "wrong input"),
        ("finish", {}, "", "soft finish"),
        ("finish", {"soft": True}, "enough", "soft finish: enough"),
        ("finish", {"soft": False}, "", "finish"),
        ("finish", {"soft": False}, "soft: no", "finish: soft: no"),
    ],
)
def test_a_task_keeps_the_options_before_the_name_and_the_comment_behind(
    name: str, options: dict[str, bool], comment: str, kept: str
) -> None:
    command = COMMANDS[name]
    assert command.kept(comment, options) == kept
    assert [command.has(o.name, kept) for o in command.options] == [options.get(o.name, o.default) for o in command.options]


@pytest.mark.parametrize("kept", ["", "finish", "finish: soft", "soft", "the parent task 7 ended badly"])
def test_what_does_not_name_an_option_before_the_command_is_without_it(kept: str) -> None:
    assert not COMMANDS["finish"].has("soft", kept)
