"""Operator commands of access."""
