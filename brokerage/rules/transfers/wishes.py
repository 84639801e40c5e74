"""For what a file is brought somewhere, and as what it counts on its link."""

from __future__ import annotations

from typing import NamedTuple

from broker_site.foundation.kernel.machine import Names
from brokerage.rules.grid.measurements import EXPRESS, PRODUCTION_OUTPUT

ROLES = Names("input stage output log dataset recovery")
"""A job needs it as input, or from tape (stage); a job made it (output, log); a dataset is wanted somewhere; a lost copy is made
anew.
"""

INPUT_ROLES = Names("input stage")
OUTPUT_ROLES = Names("output log")

PRODUCTION_INPUT, ANALYSIS_INPUT, ANALYSIS_OUTPUT = "Production Input", "Analysis Input", "Analysis Output"
STAGING, RECOVERY, DATASETS = "Staging", "Recovery", "Datasets"

ACTIVITIES = (PRODUCTION_INPUT, ANALYSIS_INPUT, PRODUCTION_OUTPUT, ANALYSIS_OUTPUT, EXPRESS, STAGING, RECOVERY, DATASETS)

EXPRESS_PRIORITY = 1000
"""From this priority on, and for the processing type urgent, transfers are express (seed 000, 001; row J22)."""


def is_express(processing_type: str, priority: int) -> bool:
    """Whether the transfers of a task or job go before others."""
    return processing_type == "urgent" or priority >= EXPRESS_PRIORITY


class FileWish(NamedTuple):
    """Somebody wants a file of the catalogue at a storage endpoint.

    `owner`: user, or `group:NAME`, for whom it is; `dataset_id`: dataset of the task whose file it is.
    """

    file_id: int
    destination: str
    role: str
    activity: str
    vo: str
    owner: str = ""
    share: str = ""
    priority: int = 0
    express: bool = False
    job_id: int | None = None
    task_id: int | None = None
    dataset_id: int | None = None
