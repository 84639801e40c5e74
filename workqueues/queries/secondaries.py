"""The secondary datasets of a master: what a splitter and the jobs need to know of their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workqueues.splitters.protocol import Secondary


class SecondaryRow(NamedTuple):
    """One file of a secondary dataset: size in bytes, 0 where unknown; `tracked`: it is used once (decision F1)."""

    id: int
    dataset_id: int
    lfn: str
    size: int
    n_events: int
    attempt_nr: int
    job_id: int | None
    tracked: bool


class SecondaryFiles(NamedTuple):
    """A secondary dataset for a splitter, and its files: `rows[i]` is the file at position `i` of `secondary.files`."""

    dataset_id: int
    stream_name: str
    secondary: Secondary
    rows: Sequence[SecondaryRow]
