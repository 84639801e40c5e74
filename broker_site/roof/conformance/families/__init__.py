"""The families of conformance cases by the part of the system that decides; importing this package maps all of them."""

from broker_site.roof.conformance.families import (
    analysis,
    concurrency,
    jobs,
    matching,
    nucleus,
    production,
    scouts,
    shares,
    site_limits,
)

__all__ = ["analysis", "concurrency", "jobs", "matching", "nucleus", "production", "scouts", "shares", "site_limits"]
