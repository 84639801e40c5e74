"""Bringing files where they are needed: who wishes what, from where, when it is tried again and when not. Pure."""
