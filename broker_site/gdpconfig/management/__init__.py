"""Operator commands of gdpconfig."""
