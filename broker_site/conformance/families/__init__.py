"""The families of conformance cases by the part of the system that decides; importing this package maps all of them."""

from broker_site.conformance.families import endings, jobs, nucleus, production

__all__ = ["endings", "jobs", "nucleus", "production"]
