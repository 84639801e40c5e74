"""Where a file lies below its storage endpoint."""

from __future__ import annotations


def stored_path(dataset_name: str, lfn: str) -> str:
    """The file in a folder of its dataset, so that equal names of two tasks do not meet."""
    return f"{dataset_name.strip('/').replace('/', '_')}/{lfn}"
