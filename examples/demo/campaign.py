"""The demo campaign as data: its task documents, made for one run. Speaks with nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SOFTWARE = FOLDER / "software"
FILES_OF_EVENTS = 20
"""Jobs of the first task, each with one file."""
LINES_TO_MERGE = 12
"""Jobs of the task that merges its outputs, each with one line."""


def tasks(run: str) -> list[dict[str, Any]]:
    """The three task documents in order, every `{run}` in them replaced: names of tasks, datasets and files of this run only."""
    return _documents("tasks", run)


def life_tasks(run: str) -> list[dict[str, Any]]:
    """Four more, by themselves: one hungry for memory, one that merges, one to be paused and one to be aborted."""
    return _documents("life", run)


def _documents(folder: str, run: str) -> list[dict[str, Any]]:
    texts = [path.read_text(encoding="utf-8") for path in sorted((FOLDER / folder).glob("*.json"))]
    return [json.loads(text.replace("{run}", run)) for text in texts]


def prefix(run: str) -> str:
    """How the names of all datasets and files of a run begin."""
    return f"demo.{run}."
