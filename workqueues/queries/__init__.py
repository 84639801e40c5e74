"""Reads of demand: from the database to the frozen facts that the rules define."""
