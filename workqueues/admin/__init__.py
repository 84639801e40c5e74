"""Django's admin of demand: everything to read; tasks take commands. States change through the ledger only."""

from workqueues.admin import catalogue, data, queues, shares, tasks

__all__ = ["catalogue", "data", "queues", "shares", "tasks"]
