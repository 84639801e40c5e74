"""Whether the grid has a nucleus of a name."""

from __future__ import annotations

from broker_site.foundation.kernel.registry import nearest
from brokerage.models import Site


def nucleus_fault(name: str) -> str:
    """What is wrong with the name of a nucleus, with the nearest one; empty where it is one, or while the grid has no sites."""
    sites = dict(Site.objects.values_list("name", "nucleus"))
    if not sites or sites.get(name):
        return ""
    near = nearest(name, [site for site, collects in sites.items() if collects])
    return f"the grid has no nucleus {name}" + (f"; the nearest name is {near}" if near else "")
