"""How long a text may be in each column of the task, dataset and output-template tables.

The refiner refuses longer values and names the limit; a test compares these lengths with the models. Source: table sections of
seed 001; where practice widened a column (facts on tables, 4.1) the wider length holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TASK: Mapping[str, int] = MappingProxyType(
    {
        "task_name": 256, "user_name": 128, "working_group": 32, "vo": 32, "prod_source_label": 20, "task_type": 64,
        "processing_type": 64, "architecture": 256, "trans_uses": 64, "trans_home": 128, "trans_path": 128,
        "term_condition": 100, "split_rule": 200, "walltime_unit": 32, "out_disk_unit": 32, "work_disk_unit": 32,
        "ram_unit": 32, "io_intensity_unit": 32, "cpu_time_unit": 32, "error_dialog": 510, "cloud": 16, "site": 255,
        "nucleus": 52, "country_group": 20, "ticket_id": 50, "ticket_system_type": 16, "campaign": 32, "request_type": 32,
        "gshare": 32, "resource_type": 56, "container_name": 200,
    }
)  # fmt: skip
"""Columns of a task: characters."""

DATASET: Mapping[str, int] = MappingProxyType(
    {
        "dataset_name": 255, "container_name": 255, "attributes": 200, "stream_name": 64, "storage_token": 100,
        "destination": 60, "lfn": 256,
    }
)  # fmt: skip
"""Columns of a dataset and of its files: characters."""

TEMPLATE: Mapping[str, int] = MappingProxyType({"filename_template": 256, "source_name": 256, "stream_name": 64, "out_type": 20})
"""Columns of an output template: characters."""

FILE_NAME = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"
"""What the name of an output may hold."""

LARGEST_NUMBERS = (2_147_483_647, 999_999_999_999)
"""Largest serial number and task id, for the longest name that a template can give."""
