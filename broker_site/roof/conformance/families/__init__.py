"""The families of conformance cases by the part of the system that decides; importing this package maps all of them."""

from broker_site.roof.conformance.families import analysis, endings, jobs, nucleus, production, shares, splitting

__all__ = ["analysis", "endings", "jobs", "nucleus", "production", "shares", "splitting"]
