"""Writing transfers: who wishes them, their moves, and what their ends mean for replicas and jobs.

Order of locks: transfer -> job -> wish -> catalogue -> dataset. What ends a job closes its wishes and leaves the transfers alone.
"""
