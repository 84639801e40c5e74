"""Decisions told to people: verdicts, why not, why empty, what if."""
