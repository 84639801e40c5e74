"""Every state, of every machine, has a symbol and a sentence."""

from __future__ import annotations

import pytest

from brokerage.states import JOB
from monitoring import wording
from workqueues.states import EVENT, INPUT_DATASET, INPUT_FILE, OUTPUT_DATASET, OUTPUT_FILE, TASK


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (TASK.states, wording.WORDS["task"]),
        (JOB.states, wording.WORDS["job"]),
        ((*INPUT_DATASET.states, *OUTPUT_DATASET.states, "done, empty"), wording.WORDS["dataset"]),
        (INPUT_FILE.states + OUTPUT_FILE.states, wording.WORDS["file"]),
        (EVENT.states, wording.WORDS["range"]),
        (("live", "used", "returned"), wording.WORDS["use"]),
        (("assign", "pending"), wording.WORDS["outcome"]),
    ],
)
def test_no_state_is_without_a_word_and_no_word_without_a_state(states: tuple[str, ...], words: dict[str, wording.Word]) -> None:
    assert set(states) == set(words)


def test_a_tone_has_a_symbol_of_its_own_so_that_colour_says_nothing_alone() -> None:
    assert len(set(wording.SYMBOLS.values())) == len(wording.SYMBOLS)


def test_help_is_a_sentence() -> None:
    wrong = [
        f"{kind}.{state}" for kind, words in wording.WORDS.items() for state, word in words.items() if word.help[-1] not in ".?"
    ]
    assert wrong == []
