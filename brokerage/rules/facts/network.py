"""How good the link from a queue to the nucleus is (seed 000, network weight; facts 1), as numbers or columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from brokerage.rules.facts.columns import Flags, Floats

Config = Mapping[str, Any]

STEPS = np.array([1.0, 2.0, 10.0, 20.0, 50.0, 75.0, 100.0, 200.0])
STEP_WEIGHTS = np.array([1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 1.8, 1.9, 2.0])
"""Throughput over as many of the steps gives the weight in that place."""

MIN_CLOSENESS, MAX_CLOSENESS = 0.0, 11.0
UNKNOWN_CLOSENESS = 0.7 * MAX_CLOSENESS
AT_NUCLEUS = 2.5
"""Weight of a queue of the nucleus itself, which has no link to pass (decision B17)."""


def queued_weight(files: Any, cap: float) -> Any:
    """2 with no file queued, 1 at the cap; a cap of 0 counts as full."""
    return 2.0 - np.minimum(files / max(cap, 1.0), 1.0)


def throughput_weight(mbps: Any, closeness: Any) -> Any:
    """By throughput where it is known, else by closeness, else by an unknown closeness."""
    distance = np.asarray(closeness, dtype=np.float64)
    near = np.where(np.isnan(distance) | (distance < 0), UNKNOWN_CLOSENESS, distance)
    by_closeness = 1.0 + (MAX_CLOSENESS - near) / (MAX_CLOSENESS - MIN_CLOSENESS)
    by_throughput = STEP_WEIGHTS[np.searchsorted(STEPS, mbps, side="left")]
    return np.where(np.isnan(mbps), by_closeness, by_throughput)


def network_weight(queued: Any, throughput: Any, importance: float) -> Any:
    """The two joined: `importance` of the queued one, the rest of the other."""
    return importance * queued + (1.0 - importance) * throughput


def weight_to_nucleus(files: Any, mbps: Floats, closeness: Floats, at_nucleus: Flags, cap: float, importance: float) -> Floats:
    """The network weight of every queue."""
    link = network_weight(queued_weight(files, cap), throughput_weight(mbps, closeness), importance)
    return np.where(at_nucleus, AT_NUCLEUS, link)


def fast_enough(weight: Any, config: Config) -> Any:
    """Whether an urgent task takes a link of this network weight (seed 000). `config`: NW_THRESHOLD, NW_WEIGHT_MULTIPLIER."""
    return weight >= least_if_urgent(config)


def least_if_urgent(config: Config) -> float:
    """The least network weight for urgent tasks."""
    least: float = config["NW_THRESHOLD"] * config["NW_WEIGHT_MULTIPLIER"]
    return least


def latest(hour: float | None, day: float | None, week: float | None) -> float | None:
    """The throughput of the freshest window that has one (decision B14)."""
    return next((window for window in (hour, day, week) if window is not None), None)
