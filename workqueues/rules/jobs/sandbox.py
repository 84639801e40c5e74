"""The archive of a user's sources, and where it lies: `-a ARCHIVE` on the command line, and `${SURL}`. Pure.

Source: facts on commands 2.6, on task parameters 2.1 (sourceURL, fixedSandbox). What is given may be anything: it is read, with
its faults, elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SOURCE_URL = "SURL"
"""The placeholder for sourceURL."""
LONGEST_ARCHIVE = 200
"""Characters of the name of an archive: a longer one is a fault, and would be put in however often there is a place for it."""

_ITEM = re.compile(r"-a ([^\s]+)")
_IN_TEXT = re.compile(r"(?<!\S)-a [^\s]+")


def source_filled(text: str, url: str) -> str:
    """The text with the URL of the sources; without one as it is."""
    return text.replace(f"${{{SOURCE_URL}}}", url) if url else text


def archive_of(params: Mapping[str, Any]) -> str:
    """The archive of the sources that the task uses; empty: it names none."""
    build, items = params.get("buildSpec"), params.get("jobParameters")
    named = [params.get("fixedSandbox"), build.get("archiveName") if isinstance(build, Mapping) else None]
    named += [_archive(item) for item in items] if isinstance(items, list | tuple) else []
    return next((name for name in named if isinstance(name, str) and name), "")


def with_sandbox(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters with the archive of fixedSandbox in place of that of the first submission: in items of the command line that
    are `-a` and an archive, in the specification of a build, and in that of merge jobs.
    """
    archive = params.get("fixedSandbox")
    if not isinstance(archive, str) or not 0 < len(archive) <= LONGEST_ARCHIVE:
        return params
    changed = dict(params)
    items, build, merge = (params.get(name) for name in ("jobParameters", "buildSpec", "mergeSpec"))
    if isinstance(items, list | tuple):
        changed["jobParameters"] = [{**item, "value": f"-a {archive}"} if _archive(item) else item for item in items]
    if isinstance(build, Mapping):
        changed["buildSpec"] = {**build, "archiveName": archive}
    if isinstance(merge, Mapping) and isinstance(text := merge.get("jobParameters"), str):
        changed["mergeSpec"] = {**merge, "jobParameters": _IN_TEXT.sub(lambda _: f"-a {archive}", text)}
    return changed


def merge_parameters(params: Mapping[str, Any]) -> str:
    """The parameters that the task gives to jobs that merge; empty: none."""
    text = (with_sandbox(params).get("mergeSpec") or {}).get("jobParameters") or ""
    return source_filled(text, params.get("sourceURL") or "")


def _archive(item: object) -> str:
    """The archive that an item of the command line names."""
    if not isinstance(item, Mapping) or item.get("type") != "constant" or not isinstance(item.get("value"), str):
        return ""
    found = _ITEM.fullmatch(item["value"])
    return found[1] if found else ""
