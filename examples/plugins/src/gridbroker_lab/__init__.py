"""The brokerage of the VO lab. Importing this package declares its configuration keys, filters, weights and policy."""

from gridbroker_lab import keys, policy, rules

__all__ = ["keys", "policy", "rules"]
