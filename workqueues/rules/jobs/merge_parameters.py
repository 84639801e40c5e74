"""The command line of a job that merges files: `${TRN_OUTPUT0}`, the pairs `${TRN_OUTPUT:OUTPUT}`, and what stands without any.

Source: facts on task parameters 2.2, on splitting 8.4. A pair stands for `inputs:output` of each of its streams, joined by
blanks; streams of which nothing was made are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from workqueues.rules.jobs.placeholders import MalformedText
from workqueues.rules.jobs.premerged import STREAM_PREFIX, stream_name

DEFAULT = "${TRN_OUTPUT:OUTPUT}"
"""The parameters where the task gives none: those of the pilot's own program."""

DEFAULT_WITH_LOGS = f"{DEFAULT} ${{TRN_LOG:LOG}}"
"""The same where merge jobs have a log of their own, so that they merge the logs of the others."""

TRANSFORMATION = "gridbroker-merge"
"""The name of the pilot's own program, which joins files; it is no path below the software area of a site."""

_PAIR = re.compile(r"\$\{TRN_([A-Z]+)(\d*):([A-Z]+)(\d*)\}")
_ALL = re.compile(r"\$\{(TRN_)?(OUTPUT|LOG)((?:/[A-Z])?)\}")


def merge_template(text: str, streams: Sequence[str], absent: Collection[str] = ()) -> str:
    """The text with plain placeholders only. `streams`: OUTPUT0, OUTPUT1, LOG0, ... of the task; `absent`: those of which no job
    made anything. Raises MalformedText for a pair of streams that do not belong together, or that the task has not.
    """

    def pair(found: re.Match[str]) -> str:
        kind, number, made, made_number = found.groups()
        if (kind, number) != (made, made_number):
            raise MalformedText(f"{found[0]}: the files of one stream become those of the same, as in ${{TRN_OUTPUT0:OUTPUT0}}")
        matching = [stream for stream in streams if stream == f"{kind}{number}" or (not number and _kind(stream) == kind)]
        if not matching:
            raise MalformedText(f"{found[0]}: the task has no stream {kind}{number}")
        return " ".join(f"${{{stream_name(s)}/L}}:${{{s}}}" for s in matching if s not in absent)

    def every(found: re.Match[str]) -> str:
        matching = [f"{found[1] or ''}{s}" for s in streams if _kind(s) == found[2] and s not in absent]
        return f"${{{','.join(matching)}{found[3]}}}" if matching else ""

    return _ALL.sub(every, _PAIR.sub(pair, text))


def merged_streams(names: Collection[str]) -> set[str]:
    """The streams whose files before the merge stand among these placeholders."""
    return {name.removeprefix(STREAM_PREFIX) for name in names if name.startswith(STREAM_PREFIX)}


def _kind(stream: str) -> str:
    return stream.rstrip("0123456789")
