"""Storage endpoints that pilots and we reach as directories."""

from __future__ import annotations

from brokerage.models import StorageEndpoint


def storage_directories() -> dict[str, str]:
    """Name of the endpoint -> its directory."""
    return dict(StorageEndpoint.objects.exclude(path="").values_list("name", "path"))
