"""What agents ask of a catalogue of datasets, files and replicas, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.jobs.held_files import CopyLook
from workqueues.rules.refine import DatasetFacts, DatasetKey, Reader, Writer

LOOKS_AT_ONCE = 32


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

    def look_up(self, reader: Reader, names: Sequence[str]) -> Mapping[str, DatasetFacts]:
        """The datasets of the reader's VO that exist, by name, and as `vo:name` those of other VOs that the reader may read.

        Others of other VOs are as unknown.
        """

    def withheld(self, reader: Reader, names: Sequence[str]) -> Collection[str]:
        """Those of these names that mean datasets of other VOs that exist and that the reader may not read.

        For agents only, who tell the owner of a task that could read them before: nobody else learns of it.
        """

    def owners(self, vo: str, names: Sequence[str]) -> Mapping[str, str]:
        """Whose datasets of the VO these are, as far as they exist."""

    def files(self, dataset: DatasetKey) -> Sequence[NewFile]:
        """The files of a dataset, in the order of their names."""

    def replicas(self, datasets: Collection[DatasetKey]) -> Mapping[DatasetKey, Sequence[Copies]]:
        """Where the datasets are, storages by name; one that is nowhere has none, one that does not exist is not there."""

    def replicas_of_files(self, dataset: DatasetKey, lfns: Sequence[str]) -> Sequence[Copies]:
        """Where these files of a dataset are."""

    def places_of_files(self, dataset: DatasetKey, lfns: Sequence[str]) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Where each of these files of a dataset is: storage and path of each copy that can be read, storages by name."""

    def register(self, names: Sequence[str], writer: Writer) -> None:
        """Make sure that the datasets exist and are open for the writer. Raises DatasetOfAnother."""

    def close(self, names: Sequence[str], writer: Writer) -> None:
        """No more files come to these datasets, as far as they are the writer's."""

    def check(self, dataset: DatasetKey, lfns: Sequence[str]) -> Mapping[str, Sequence[CopyLook]]:
        """How every registered copy of these files stands on its storage."""


class StorageRoot(Protocol):
    """The root of a storage endpoint, and how it is marked (empty: never)."""

    @property
    def mark(self) -> str: ...

    def fault(self) -> str:
        """Why the storage is down; empty when it is there."""
        ...

    def measure(self, path: str, size: int) -> tuple[int, str] | None:
        """Size of a file, and its adler32 if that is the size expected; None: there is none. OSError: it cannot be read."""
        ...


StorageLocator = Callable[[], Mapping[str, StorageRoot]]
_locators: list[StorageLocator] = []


def locate_storages_with(locator: StorageLocator) -> None:
    """Say who knows the roots of storage endpoints, by name: the grid does, which is above this app."""
    _locators[:] = [locator]


def storage_faults(names: Collection[str]) -> Mapping[str, str]:
    """Why each of these storage endpoints is down; empty for one that is there, or of which nothing is known."""
    roots = storage_roots()
    return {**dict.fromkeys(names, ""), **faults_of({name: roots[name] for name in names if name in roots})}


def faults_of(roots: Mapping[str, StorageRoot]) -> Mapping[str, str]:
    """Why each of these is down, looked at all at the same time: one that takes long to answer holds up nobody."""
    with ThreadPoolExecutor(min(LOOKS_AT_ONCE, len(roots) or 1), "faults") as pool:
        return dict(zip(roots, pool.map(lambda root: root.fault(), roots.values()), strict=True))


def storage_roots() -> Mapping[str, StorageRoot]:
    return _locators[0]() if _locators else {}
