"""The families of conformance cases by the part of the system that decides; importing this package maps all of them."""

from broker_site.roof.conformance.families import (
    analysis,
    concurrency,
    elements,
    jobs,
    matching,
    nucleus,
    production,
    scouts,
    shares,
    site_limits,
    submission,
)

__all__ = [
    "analysis",
    "concurrency",
    "elements",
    "jobs",
    "matching",
    "nucleus",
    "production",
    "scouts",
    "shares",
    "site_limits",
    "submission",
]
