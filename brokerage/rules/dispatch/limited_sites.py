"""Whether the sites are there for which the configuration has limits; who knows the grid tells at the start. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

SitesCheck = Callable[[Iterable[str]], list[str]]
"""Names -> what is wrong with each that is no site's, in words."""
_check: SitesCheck | None = None


def know_sites_with(check: SitesCheck) -> None:
    """`check` looks names of sites up in the grid."""
    global _check
    _check = check


def no_site(setting: Any) -> str | None:
    """Why a setting by sites cannot be configured: a limit of a site that is not there would limit nothing. None where it can."""
    faults = _check(setting) if _check and isinstance(setting, Mapping) else []
    return "; ".join(faults) or None
