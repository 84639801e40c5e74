"""Running the whole system on one machine: starts, watches and stops it. Used by `up`, `demo`, tests and chaos."""

from broker_site.roof.supervisor.system import NotRunning, Pilot, System, running

__all__ = ["NotRunning", "Pilot", "System", "running"]
