"""Django's admin of demand: everything to read; tasks take commands. States change through the ledger only."""

from workqueues.admin import catalogue, data, queues, read_grants, shares, tasks, tree

__all__ = ["catalogue", "data", "queues", "read_grants", "shares", "tasks", "tree"]
