"""Task documents to begin with: small, whole, and taken as they are once names and program are one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Example(NamedTuple):
    """What the example shows, and its parameters without owner and VO."""

    shows: str
    parameters: Mapping[str, Any]


_PROGRAM = {"architecture": "", "transUses": "Demo-1.0", "transHome": None, "ramUnit": "MBPerCore", "coreCount": 1}


def _log(name: str) -> dict[str, str]:
    return {"type": "template", "param_type": "log", "dataset": f"{name}.log", "value": f"{name}.log.${{SN}}.tgz"}


EXAMPLES: Mapping[str, Example] = {
    "events": Example(
        "makes events without input",
        {
            "taskName": "my.events", "prodSourceLabel": "user", "taskType": "anal", "processingType": "evgen", **_PROGRAM,
            "transPath": "make_events.py", "ramCount": 500, "noInput": True, "nEvents": 8000, "nEventsPerJob": 4000,
            "log": _log("my.events"),
            "jobParameters": [
                {"type": "template", "param_type": "number", "value": "--seed ${RNDMSEED}", "offset": 1000},
                {"type": "template", "param_type": "pseudo_input", "dataset": "seq_number", "value": "--serial ${SEQNUMBER}"},
                {"type": "template", "param_type": "number", "value": "--events ${MAXEVENTS}"},
                {"type": "template", "param_type": "output", "dataset": "my.events.EVNT",
                 "value": "--out=my.events.EVNT.${SN}.jsonl"},
            ],
        },
    ),
    "files": Example(
        "reads a dataset, two files a job",
        {
            "taskName": "my.files", "prodSourceLabel": "user", "taskType": "anal", "processingType": "reco", **_PROGRAM,
            "transPath": "process_events.py", "ramCount": 500, "nFilesPerJob": 2,
            "log": _log("my.files"),
            "jobParameters": [
                {"type": "template", "param_type": "input", "dataset": "my.events.EVNT", "value": "--in ${IN}"},
                {"type": "template", "param_type": "output", "dataset": "my.files.HIST",
                 "value": "--out=my.files.HIST.${SN}.json"},
            ],
        },
    ),
    "scan": Example(
        "runs a program with 20 serial numbers",
        {
            "taskName": "my.scan", "prodSourceLabel": "user", "taskType": "anal", "processingType": "simul", **_PROGRAM,
            "transPath": "burn.py", "ramCount": 200, "noInput": True, "nEvents": 20, "nEventsPerJob": 1, "log": _log("my.scan"),
            "jobParameters": [
                {"type": "template", "param_type": "pseudo_input", "dataset": "seq_number", "value": "--serial ${SEQNUMBER}"},
                {"type": "constant", "value": "--seconds 1"},
                {"type": "template", "param_type": "output", "dataset": "my.scan.OUT", "value": "--out=my.scan.OUT.${SN}.txt"},
            ],
        },
    ),
}  # fmt: skip
"""By name; they read and write datasets of their own."""
