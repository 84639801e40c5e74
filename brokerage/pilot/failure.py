"""How a job can fail at the pilot: one exception with the words that the report carries."""

from __future__ import annotations


class Failure(Exception):
    """The job has failed and is to be reported so.

    code: BAD_JOB, NO_CONTAINER, TRF_NOT_FOUND, BAD_PARAMETERS, PAYLOAD_START, PAYLOAD_EXIT, PAYLOAD_MEMORY, PAYLOAD_DISK,
    PAYLOAD_LOST, WALLTIME, KILLED, PILOT_STOPPED, PILOT_ERROR (the worker node's own disk), INPUT_MISSING, INPUT_CORRUPT,
    STAGEIN_FAILED, OUTPUT_MISSING, OUTPUT_EXISTS or STAGEOUT_FAILED. missing, corrupt: names of input files that no source has,
    or has only damaged.
    """

    def __init__(self, code: str, message: str, *, missing: tuple[str, ...] = (), corrupt: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.missing = missing
        self.corrupt = corrupt


class LeaseLost(Exception):
    """The job is no longer ours: nothing may be written or reported any more."""
