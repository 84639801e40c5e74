"""The VO lab. Importing this package declares its configuration keys, filters, weights, policy, splitter and generator."""

from gridbroker_lab import keys, policy, rules, runs

__all__ = ["keys", "policy", "rules", "runs"]
