"""How what waits to be merged is called: datasets, files and streams of outputs before jobs of the same task merge them.

Source: facts on workflows 7.1, on task parameters 2.1 (umNameAtEnd). Files have names of their own, so that a job that merges
them can have them beside what it makes.
"""

from __future__ import annotations

PREFIX, SUFFIX, FILE_PREFIX, STREAM_PREFIX, TYPE_PREFIX = "panda.um.", ".panda.um", "um.", "TRN_", "trn_"
MERGE_LOG_STREAM = "LOG_MERGE"
"""The stream of the logs of merge jobs; without it these are the files of the log dataset."""
LONGER_DATASET, LONGER_FILE = max(len(PREFIX), len(SUFFIX)), len(FILE_PREFIX)
"""Characters by which the names are longer than those of what is made of them."""


def dataset_name(name: str, *, at_end: bool) -> str:
    """The dataset of the files that will be merged into those of the dataset `name`."""
    return f"{name}{SUFFIX}" if at_end else f"{PREFIX}{name}"


def file_name(template: str) -> str:
    """The template of the names of files that will be merged into those of this template."""
    return f"{FILE_PREFIX}{template}"


def stream_name(stream: str) -> str:
    """The stream of the files that will be merged into those of the stream."""
    return f"{STREAM_PREFIX}{stream}"
