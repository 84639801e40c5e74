"""Private PostgreSQL and Redis for `make up`, `make demo`, tests and benchmarks, under `.gridbroker/` of the working folder.

Here: where they live, how they start, stop and are found again after a crash. Not here: our own processes
(`broker_site.roof.supervisor`). Nothing in here knows Django.
"""

from broker_site.roof.embedded.instance import ROOT, Instance, Services, attached, quiet
from broker_site.roof.embedded.place import NoPlace, known_instances
from broker_site.roof.embedded.postgres import NotStarted

__all__ = ["ROOT", "Instance", "NoPlace", "NotStarted", "Services", "attached", "known_instances", "quiet"]
