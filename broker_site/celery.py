"""The Celery application: hands that look where PostgreSQL says there is work.

Messages carry no work, only "look now" (they may be lost or doubled), so results are not kept, publishing is not retried, and
Redis needs no persistence. The table of agents and their periods is in `beat.py`.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

from celery import Celery
from celery.signals import worker_process_init
from django.conf import settings
from kombu import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_site.settings")

SOFT_LIMIT_S, HARD_LIMIT_S = 110, 120
QUEUE = "agents"
"""Messages are not acknowledged: one that is lost costs a period. A worker whose acknowledgements fail, because Redis died
meanwhile, counts them as under way for ever, and takes no other ones.
"""

CONNECTION_RUNS = 1000
"""Runs of agents that share a connection to the database: opening one costs more than a look that finds nothing."""

app = Celery("gridbroker", set_as_current=True)
app.conf.update(
    CELERY_DB_REUSE_MAX=CONNECTION_RUNS,
    broker_url=settings.REDIS_URL,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_connection_timeout=2,
    broker_transport_options={
        "socket_timeout": 5,
        "socket_connect_timeout": 1,
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
    result_backend=None,
    task_ignore_result=True,
    task_store_errors_even_if_ignored=False,
    accept_content=["json"],
    task_serializer="json",
    result_serializer="json",
    event_serializer="json",
    task_queues=[Queue(QUEUE, no_ack=True)],
    task_default_queue=QUEUE,
    task_publish_retry=False,
    task_soft_time_limit=SOFT_LIMIT_S,
    task_time_limit=HARD_LIMIT_S,
    worker_max_memory_per_child=settings.WORKER_MEMORY_MB
    * 1000
    // 2,  # kB: a process that has grown so is replaced after its run
    worker_disable_prefetch=True,  # what nobody has time for stays in Redis and expires there
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    worker_enable_remote_control=False,
    timezone="UTC",
    enable_utc=True,
)


@worker_process_init.connect
def limit_memory(**context: object) -> None:
    """Let no run take so much memory that the machine suffers: it gets a MemoryError, which counts for the task at work.

    What libraries have set aside before does not count.
    """
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + settings.WORKER_MEMORY_MB * 1_000_000
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
