"""A machine is its table: arrows, final states, paths, what it refuses to parse."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_site.foundation.kernel.machine import Machine, MachineError, Names, NotAllowed
from brokerage.states import JOB
from workqueues.states import (
    EVENT,
    INPUT_DATASET,
    INPUT_FILE,
    INPUT_TYPES,
    LOG_TYPES,
    MASTER_TYPES,
    OUTPUT_DATASET,
    OUTPUT_FILE,
    OUTPUT_TYPES,
    PREMERGED_TYPES,
    TASK,
    TYPES,
    WRITTEN_TYPES,
)

MACHINES = [TASK, INPUT_DATASET, OUTPUT_DATASET, INPUT_FILE, OUTPUT_FILE, EVENT, JOB]

DOOR = Machine(
    "door",
    """
    # event | from        | to
    build   | -           | open closed
    shut    | open        | closed
    open    | closed      | open
    burn    | open closed | gone
    """,
)


def test_the_table_gives_states_arrows_and_final_states() -> None:
    assert DOOR.states == ("open", "closed", "gone")
    assert DOOR.initial == {"open", "closed"}
    assert DOOR.final == {"gone"}
    assert DOOR.live == ("open", "closed")
    assert DOOR.accepting("burn") == ("open", "closed")
    assert DOOR.outcomes("burn") == ("gone",)
    assert DOOR.sources("gone") == ("open", "closed")


def test_staying_is_not_a_move_and_a_missing_arrow_is_refused_by_name() -> None:
    assert not DOOR.allows("open", "open")
    with pytest.raises(NotAllowed, match="door: no move from 'gone' to 'open'"):
        DOOR.check("gone", "open")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("build | -", "line 1: expected"),
        ("build | - | open\nbuild | - | open", "line 2: - -> open on build stands twice"),
        ("shut | open | closed", "no line with the source"),
        ("build | | open", "line 1: expected"),
    ],
)
def test_a_malformed_table_is_refused_with_its_line(table: str, message: str) -> None:
    with pytest.raises(MachineError, match=message):
        Machine("bad", table)


def test_a_final_state_that_no_line_names_is_refused() -> None:
    with pytest.raises(MachineError, match="ended"):
        Machine("bad", "build | - | open", final="ended")


def _targets(machine: Machine, source: str) -> list[str]:
    return [state for state in machine.states if machine.allows(source, state)]


@given(st.sampled_from(MACHINES), st.data())
def test_every_walk_along_the_arrows_is_allowed_and_a_jump_is_not(machine: Machine, data: st.DataObject) -> None:
    state = data.draw(st.sampled_from(sorted(machine.initial)))
    walk = [state]
    for _ in range(data.draw(st.integers(0, 12))):
        if not _targets(machine, walk[-1]):
            break
        walk.append(data.draw(st.sampled_from(_targets(machine, walk[-1]))))
    assert all(machine.allows(old, new) for old, new in pairwise(walk))
    jump = data.draw(st.sampled_from(machine.states))
    assert machine.allows(walk[-1], jump) == (jump in _targets(machine, walk[-1]))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_every_state_can_be_reached_and_every_live_one_can_be_left(machine: Machine) -> None:
    reached, frontier = set(machine.initial), list(machine.initial)
    while frontier:
        for target in _targets(machine, frontier.pop()):
            if target not in reached:
                reached.add(target)
                frontier.append(target)
    assert reached == set(machine.states)
    assert all(_targets(machine, state) for state in machine.live if (machine.name, state) != ("event_range", "done"))


STATES = {
    TASK: """registered defined assigning ready pending scouting scouted running prepared done failed finished aborting aborted
        finishing topreprocess preprocessing tobroken broken toretry toincexec rerefine paused throttled exhausted passed""",
    INPUT_DATASET: "defined toupdate pending broken ready done",
    OUTPUT_DATASET: "defined ready running prepared done",
    INPUT_FILE: "ready missing lost broken picked running finished failed partial",
    OUTPUT_FILE: "defined running prepared merging finished failed",
    EVENT: "ready sent running finished cancelled discarded done failed fatal merged corrupted",
    JOB: """pending defined waiting assigned throttled activated sent starting running holding transferring merging finished
        failed cancelled closed""",
}


@pytest.mark.parametrize(("machine", "words"), STATES.items(), ids=[m.name for m in STATES])
def test_the_states_are_those_of_the_documents(machine: Machine, words: str) -> None:
    assert set(machine.states) == set(words.split())


def test_a_job_never_goes_back_from_a_pilot() -> None:
    assert not any(JOB.allows(held, waiting) for held in (*JOB.leased, *JOB.delivering) for waiting in JOB.waiting)


def test_the_drawing_has_every_arrow() -> None:
    drawing = JOB.drawing()
    assert "activated --> sent: send" in drawing
    assert drawing.count("-->") == len(JOB.transitions) + len(JOB.final)


def test_names_keep_their_order_and_are_listed_for_sql() -> None:
    names = Names("b a") | ("c", "a")
    assert list(names) == ["b", "a", "c"]
    assert names.sql == "'b', 'a', 'c'"
    assert [list(names - ("a",)), list(names & {"a", "b"})] == [["b", "c"], ["b", "a"]]


def test_a_set_of_states_that_the_table_does_not_have_is_refused() -> None:
    class Lift(Machine):
        moving = Names("up dwon")

    with pytest.raises(MachineError, match=r"moving states \['dwon'\]"):
        Lift("lift", "start | - | up down")


def test_every_set_of_states_of_the_machines_is_one() -> None:
    for machine in MACHINES:
        for name in (
            name for kind in type(machine).__mro__ for name, of in vars(kind).items() if isinstance(of, Names | property)
        ):
            assert set() < set(getattr(machine, name)) < set(machine.states), f"{machine.name}.{name}"
    assert INPUT_TYPES | WRITTEN_TYPES | ("tmpl_output", "tmpl_log") == TYPES
    assert set(OUTPUT_TYPES) | set(PREMERGED_TYPES) == set(WRITTEN_TYPES) > set(LOG_TYPES)
    assert set(MASTER_TYPES) < set(INPUT_TYPES)


def test_an_event_that_the_table_does_not_have_is_no_empty_set_of_states() -> None:
    machine = Machine("door", "open | - | opened\nclose | opened | closed")
    with pytest.raises(MachineError, match="no event 'slam'"):
        machine.accepting("slam")
    with pytest.raises(MachineError, match="no event 'slam'"):
        machine.outcomes("slam")
