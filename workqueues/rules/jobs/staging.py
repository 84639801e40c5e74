"""Files that are held back until they are staged from tape, before jobs are made of them (row J26). Pure."""

from __future__ import annotations

STAGED_FIRST = "staged from tape before it is used"
"""How the reason begins for which such a file is held."""

NOT_LOOKED_AT = f"{STAGED_FIRST}: its copies are looked up"


def on_its_way(storage: str) -> str:
    """Why a file is held that is brought to a disk."""
    return f"{STAGED_FIRST}: on its way to {storage}"


def not_brought(storage: str, reason: str) -> str:
    """Why a file is held that could not be brought to a disk; it is asked for again later."""
    return f"{STAGED_FIRST}: not brought to {storage} ({reason}), asked for again later"


def without_disk(tape: str) -> str:
    """Why a file is held for which there is no disk to bring it to, or no copy at all."""
    return f"{STAGED_FIRST}: no disk takes files from {tape}" if tape else f"{STAGED_FIRST}: no copy of it is left"
