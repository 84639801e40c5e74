"""What agents ask of a catalogue of datasets, files and replicas, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.refine import DatasetFacts

Condition = Literal["ok", "lost", "broken"]


@dataclass(frozen=True, slots=True)
class Copies:
    """What one storage endpoint has of a dataset, or of some of its files: number of files, and their size in bytes."""

    storage: str
    files: int
    size: int


class CatalogueUnavailable(Exception):
    """The catalogue does not answer: ask again later."""


class Catalogue(Protocol):
    """The questions; every one may raise CatalogueUnavailable."""

    def look_up(self, names: Sequence[str]) -> Mapping[str, DatasetFacts]:
        """The datasets that exist, by name."""

    def files(self, name: str) -> Sequence[NewFile]:
        """The files of a dataset, in the order of their names."""

    def replicas(self, names: Sequence[str]) -> Mapping[str, Sequence[Copies]]:
        """Where the datasets are, storages by name; one that is nowhere has none, one that does not exist is not there."""

    def replicas_of_files(self, name: str, lfns: Sequence[str]) -> Sequence[Copies]:
        """Where these files of a dataset are."""

    def register(self, names: Sequence[str]) -> None:
        """Make sure that the datasets exist and are open."""

    def close(self, names: Sequence[str]) -> None:
        """No more files come to these datasets."""

    def check(self, dataset: str, lfns: Sequence[str]) -> Mapping[str, Condition]:
        """Whether files are still there as registered: lost when no copy is left, broken when no copy is as registered."""


StorageLocator = Callable[[], Mapping[str, str]]
_locators: list[StorageLocator] = []


def locate_storages_with(locator: StorageLocator) -> None:
    """Say who knows the directories of storage endpoints (name -> path): the grid does, which is above this app."""
    _locators[:] = [locator]


def storage_paths() -> Mapping[str, str]:
    return _locators[0]() if _locators else {}
