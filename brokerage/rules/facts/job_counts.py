"""What numbers of jobs at a queue come to: how many count as running, and whether too many wait for input."""

from __future__ import annotations

from typing import Any

import numpy as np

from brokerage.rules.facts.columns import Ints

BOOTSTRAP = 20
"""Batch workers count as running jobs up to this, and only while fewer jobs run."""


def effective_running(real: Any, n_batch: Any, num_slots: Any, starting: Any) -> Ints:
    """The largest of: jobs that run, batch workers at a queue that begins, declared slots, starting jobs where slots are open.

    num_slots is 0 where slots are open and -1 where none are declared.
    """
    begins = np.where((real < BOOTSTRAP) & (n_batch > real), np.minimum(n_batch, BOOTSTRAP), 0)
    declared = np.where(num_slots > 0, num_slots, np.where(num_slots == 0, starting, 0))
    largest: Ints = np.maximum(np.maximum(real, begins), declared)
    return largest


def many_assigned(assigned: Any, activated: Any) -> Any:
    """How much too many jobs wait for input: assigned / activated between 1 and 2; with none activated one is added to both."""
    ratio = np.where(activated > 0, assigned / np.maximum(activated, 1), (assigned + 1) / (activated + 1))
    return np.clip(ratio, 1.0, 2.0)
