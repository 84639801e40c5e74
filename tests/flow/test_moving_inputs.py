"""Input that is not where jobs run: it is asked for, jobs wait for it, and start or end with what becomes of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from broker_site.foundation.agency.run import run_agent
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import ComputingQueue, Job, JobChange, JobSpec, QueueStorage, StorageEndpoint, Transfer, TransferWish
from brokerage.queries.invariants import check
from brokerage.queries.job_document import job_document
from brokerage.queries.jobs import waiting_at  # noqa: F401
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import end, run_agents, run_jobs, take, try_take
from workqueues.ledger.commands import command
from workqueues.models import File, Replica, Task
