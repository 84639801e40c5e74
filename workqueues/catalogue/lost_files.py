"""Whether files that somebody calls lost are: a copy that stands intact on its storage says that one is not."""

from __future__ import annotations

from collections.abc import Sequence

from workqueues.catalogue import DatasetKey, catalogue


class StillThere(Exception):
    """A file is not lost; the message is a sentence for whoever said so."""


def check_lost_files(dataset: DatasetKey, lfns: Sequence[str]) -> None:
    """Look at every copy of the files. Raises StillThere, CatalogueUnavailable."""
    for lfn, looks in catalogue().check(dataset, lfns).items():
        for look in looks:
            if look.found == "intact" and look.state != "down":
                raise StillThere(f"the file {lfn} is not lost: its copy at {look.storage} is intact")
