"""How much space a storage endpoint keeps free of cache copies (decision I7). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation.gdpconfig.values import pick

SMALL_PART = 0.1
"""A small endpoint keeps this part of its size free, where that is less than what is configured for all."""

GB = 1e9


def watermark_gb(config: Mapping[str, Any], storage: str, size_gb: float) -> float:
    """The free space below which an endpoint of this size gives up cache copies."""
    own: float | None = pick(config, "WATERMARK_<storage>", storage=storage)
    return min(config["WATERMARK"], SMALL_PART * size_gb) if own is None else own


def bytes_short(config: Mapping[str, Any], storage: str, free_gb: float, size_gb: float) -> float:
    """How many bytes an endpoint lacks to its watermark; 0 where it has enough."""
    return max(0.0, (watermark_gb(config, storage, size_gb) - free_gb) * GB)
