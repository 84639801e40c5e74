"""The VO lab. Importing this package declares its configuration keys, filters, weights, policies, splitter and generator."""

from gridbroker_lab import dispatch, keys, policy, rules, runs

__all__ = ["dispatch", "keys", "policy", "rules", "runs"]
