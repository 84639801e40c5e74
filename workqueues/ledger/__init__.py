"""The only writer of demand: every transaction and every change of state of tasks, datasets and files is in this room.

Locks are taken in the order task -> dataset -> file -> job, by id within each. No verb does outside I/O inside a transaction.
"""
