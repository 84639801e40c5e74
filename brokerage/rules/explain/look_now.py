"""The sentence about a look that somebody asked for."""

from __future__ import annotations


def told(target: str, tasks: int) -> str:
    """What follows for a target (`task 7`, `queue ALPHA`), of which so many tasks wait."""
    if target.startswith("task "):
        return f"{target.capitalize()} is looked at now." if tasks else f"{target.capitalize()} does not wait for a time."
    if not tasks:
        return f"No task waits for {target}."
    waits = "1 task waits" if tasks == 1 else f"{tasks} tasks wait"
    return f"{waits} for {target}; judged now, as many go on as there is room for."
