"""Every word that pages use for a state, a criterion or an error has its place in the glossary, with what follows from it."""

from __future__ import annotations

import re
from pathlib import Path

from brokerage.rules.decision.declare import POLICIES
from brokerage.states import JOB
from monitoring.error_words import ERRORS
from monitoring.glossary import OTHERS, STATES, sections
from monitoring.wording import WORDS
from workqueues.states import TASK

ROOT = Path(__file__).resolve().parents[3]
ENTRIES = {entry.anchor: entry for section in sections() for entry in section.entries}
CODES = re.compile(r'Failure\(\s*"([A-Z_]+)"|Settlement\("failed", "", "([A-Z_]+)"')


def test_every_kind_of_word_is_there_and_each_anchor_once() -> None:
    assert set(STATES) | set(OTHERS) == set(WORDS)
    assert len(ENTRIES) == sum(len(section.entries) for section in sections())


def test_every_state_tells_where_it_goes_or_that_it_stays() -> None:
    for machine in (TASK, JOB):
        for state in machine.states:
            entry = ENTRIES[f"{machine.name}-{state}"]
            assert all(line.endswith(".") for line in entry.means)
            goes = {t.target for t in machine.transitions if t.source == state} - {state}
            assert all(target in entry.follows for target in goes)
            assert bool(goes) == (entry.follows != "It stays so.")


def test_every_criterion_tells_whether_waiting_helps() -> None:
    for policy in POLICIES.values():
        for criterion in policy.criteria:
            entry = ENTRIES[f"criterion-{criterion.label}"]
            assert entry.means
            assert ("may pass with time" in entry.follows) >= (criterion.kind == "temporary")


def test_every_error_code_of_pilot_and_broker_has_advice() -> None:
    sources = [*(ROOT / "brokerage" / "pilot").glob("*.py"), *(ROOT / "brokerage" / "rules" / "dispatch").glob("*.py")]
    codes = {code for source in sources for match in CODES.findall(source.read_text()) for code in match if code}
    assert len(codes) > 12
    assert codes <= set(ERRORS)
