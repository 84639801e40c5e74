"""Operator commands of access: `token`."""
