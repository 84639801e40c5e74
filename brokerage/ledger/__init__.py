"""The only writer of supply: jobs, leases, pilots, task queues and decisions; calls the ledger of demand in the same transaction.

Locks are taken in the order task -> dataset -> file -> job, by id within each. No verb does outside I/O inside a transaction.
"""
