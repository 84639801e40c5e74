"""The client of GridBroker: tasks from Python, by the standard library alone, on Python 3.9 or newer.

    from broker_site.client import Client

    client = Client("https://broker.example.org", "gbu_...")     # or Client(): what `broker login` kept
    task = client.tasks.submit({"taskName": "first", "vo": "demo", ...})
    task.wait(timeout=3600)                                       # TimedOut; Ctrl-C leaves the task alone
    for job in task.jobs(status="failed"):
        print(job.id, job.row["computing_queue"])
    for task in client.tasks.list(status="running", limit=None):  # as many pages as there are
        print(task.id, task.why().headline)

What the server refuses is `Refused`, with title, detail and each fault's field; `Unreachable` is a server that does not answer.
The command `broker` (`broker_site.client.command`) is made of these.
"""

from __future__ import annotations

from broker_site.client.api import Client
from broker_site.client.errors import BrokerError, Fault, Refused, TimedOut, Unreachable, Unusable
from broker_site.client.jobs import Job
from broker_site.client.progress import Progress
from broker_site.client.tasks import Task
from broker_site.client.why import Why

__all__ = [
    "BrokerError",
    "Client",
    "Fault",
    "Job",
    "Progress",
    "Refused",
    "Task",
    "TimedOut",
    "Unreachable",
    "Unusable",
    "Why",
]
