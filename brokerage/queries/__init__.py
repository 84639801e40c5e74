"""Reads of supply: from the database to the frozen facts that the rules define."""
