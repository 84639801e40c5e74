"""The attributes of a dataset, hints for splitting: one text with commas, as the documents and practice write it.

Source: seed 001, "Dataset attributes"; facts on task parameters 3.3, on splitting 8.3. Not here: dealing out the files
(`workqueues.splitters.secondaries`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

FLAGS: Mapping[str, str] = {
    "repeat": "repeat",
    "nosplit": "nosplit",
    "manytime": "many_time",
    "cvmfs": "everywhere",
    "ru": "reusable",
    "rd": "random",
    "ic": "index_consistent",
    "cc": "checked",
    "pu": "pileup",
    "pd": "parent_data",
}
NUMBERS: Mapping[str, str] = {"ratio": "ratio", "er": "event_ratio"}
COUNTS: Mapping[str, str] = {"np": "files_per_job"}


@dataclass(frozen=True, slots=True)
class Attributes:
    """What the attributes of a dataset say.

    `ratio`: files for each file of the master; `event_ratio`: events for each event of the master, instead; `files_per_job`:
    that many a job, whatever the master; `many_time`: many tasks read it; `everywhere`: every queue has it (cvmfs);
    `pileup`, `parent_data`: what it is to the input, which counts where other brokers pull the work;
    `checked`: of a dataset that the parent wrote only files that are known to be good.
    """

    ratio: float = 1.0
    event_ratio: float | None = None
    files_per_job: int | None = None
    repeat: bool = False
    nosplit: bool = False
    many_time: bool = False
    everywhere: bool = False
    reusable: bool = False
    random: bool = False
    index_consistent: bool = False
    checked: bool = False
    pileup: bool = False
    parent_data: bool = False

    @property
    def tracked(self) -> bool:
        """Whether each of its files is used once (decision F1)."""
        return not (self.repeat or self.nosplit or self.reusable or self.many_time)


@lru_cache(maxsize=4096)
def read_attributes(text: str) -> Attributes:
    """Read the text; words without a meaning here are passed over."""
    values: dict[str, object] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = word.partition("=")
        if name in FLAGS and not value:
            values[FLAGS[name]] = True
        elif name in NUMBERS:
            values[NUMBERS[name]] = float(value)
        elif name in COUNTS:
            values[COUNTS[name]] = int(value)
    return Attributes(**values)  # type: ignore[arg-type]
