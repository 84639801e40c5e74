"""The factors by which a nucleus is drawn (seed 001, task brokerage; facts on the brokerage 5)."""

from __future__ import annotations

import numpy as np

from brokerage.rules.decision.declare import weight
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Floats
from brokerage.rules.facts.needs import LEAST_WORK
from brokerage.rules.facts.snapshot import Nuclei

TAPE_ONLY = 0.001
"""Weight of a nucleus that has some of the input on tape only."""


@weight("remaining_work")
def less_work_ahead(_ask: Ask, nuclei: Nuclei, _config: Config) -> Floats:
    """1 / the remaining work of tasks of no lower priority there; little work counts as 1."""
    return 1.0 / np.where(nuclei.work_ahead < LEAST_WORK, 1.0, nuclei.work_ahead)


@weight("input_there")
def input_there(ask: Ask, nuclei: Nuclei, _config: Config) -> Floats | float:
    """The part of the input that is there; 1 without input."""
    return nuclei.available_gb / ask.chunk.gb if ask.chunk.gb > 0 else 1.0


@weight("tape")
def not_from_tape(ask: Ask, nuclei: Nuclei, _config: Config) -> Floats | float:
    """0.001 where some of the input is on tape only."""
    return np.where(nuclei.tape_only, TAPE_ONLY, 1.0) if ask.chunk.gb > 0 else 1.0
