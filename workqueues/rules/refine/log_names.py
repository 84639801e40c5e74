"""Names of outputs that would be those of the plain files beside a log of the task: one would stand in the other's place, or be
removed with a log that it has nothing to do with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workqueues.rules.jobs.log_streams import STREAMS, log_of, stream_file
from workqueues.rules.refine.name_shapes import shape_of
from workqueues.rules.refine.types import Item
from workqueues.states import OUTPUT_TYPES

_TAKEN = ", ".join(stream_file("<its name>", stream) for stream in STREAMS)


def names_beside_logs(items: Sequence[Item]) -> Iterator[tuple[str, str, str]]:
    """Outputs, or logs, that may be called as a plain file of a log: the field, the kind of fault, and words."""
    logs = [(shape_of(item.file_name), item) for item in items if item.type == "log" and item.file_name]
    for item in items:
        if item.type not in OUTPUT_TYPES or not (named_for := log_of(item.file_name)):
            continue
        shape = shape_of(named_for)
        if log := next((log for known, log in logs if log is not item and known.meets(shape)), None):
            yield (
                f"{item.path}.value",
                "contradiction",
                f"a file of it may be called as one of the plain files beside a log: {_TAKEN} of a name of {log.path} are taken",
            )
