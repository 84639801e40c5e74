"""Every operation of the OpenAPI document, asked by schemathesis with what it allows and what it forbids, answers as it says.

All checks of schemathesis are on: no fault of the server; only documented statuses, content types and shapes; what the document
forbids is refused, what it allows is taken; no answer without a credential. Each request is undone after its answer. A usual
run tries some of the requests; all of them: `--hypothesis-profile thorough`, or SCHEMATHESIS_EXAMPLES=200.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connection, transaction
from django.test import override_settings
from hypothesis import settings
from schemathesis import Case, GenerationMode
from schemathesis.config import SchemathesisConfig

from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.access.credentials import ensure_user, issue_enrolment, issue_pilot_token, issue_user_token
from broker_site.foundation.access.models import Credential, User
from broker_site.foundation.access.strangers import STRANGERS
from broker_site.foundation.access.tokens import mint_job_token
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.changesets import Draft, named_line
from broker_site.foundation.gdpconfig.proposals import propose
from broker_site.foundation.kernel import clock
from broker_site.wsgi import application
from brokerage.api.matching import FINISHING, MATCHING
from brokerage.api.pilots import ASKING_FOR_OUTCOMES, REGISTERING
from brokerage.api.reports import REPORTING
from brokerage.ledger.bulk import Wish, start
from brokerage.models import ComputingQueue, Decision, Job, SavedView
from tests.builders import catalogue_dataset, grid, parameters, pilot, reading, submitted
from tests.flow.steps import run_agents, try_take
from workqueues.models import Dataset, File, ReadGrant

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "0"))
THOROUGH = EXAMPLES > 0 or settings.get_current_profile_name() == "thorough"
FEW = 6
"""Requests to each operation in a usual run: half of them the first, which are the plainest, half drawn from the rest."""

pytestmark = [pytest.mark.django_db, *([pytest.mark.long] if THOROUGH else ())]

SAID_BY_THE_DOCUMENT = frozenset(
    ("required", "blank", "null", "type", "invalid", "min_length", "max_length", "min_value", "max_value", "empty", "not_a_list")
)
"""Rules that the document can say: what it allows must not break them."""
NEEDED_WITH_ANOTHER = frozenset(
    ("", "count", "value", "priority", "ids", "filter", "blocked_until", "jobParameters", "period", "lostFiles", "oldDatasetName")
)
"""Fields that are needed with some other field or its value only ("": one of several), or an item in them, as an input in
`jobParameters` without `noInput`; the document says so in words.
"""
KNOWN_IN_BODIES = {"vo": "demo", "queue": "ALPHA", "site": "SITE_ALPHA"}
generated: Counter[str] = Counter()
answered: Counter[str] = Counter()
"""Requests by operation."""
OF_KINDS = {
    "submitter": ["tasks_create"],
    "enrolment": ["register_pilot", "site_advertisement_send"],
    "pilot": ["match", "reports", "settled"],
    "job": ["heartbeat", "report"],
}
"""Operations that others than a superuser may call."""


SHORT = [] if THOROUGH else [{"include-operation-id": ["tasks_create"], "phases": {"coverage": {"enabled": False}}}]
"""The bounds of each of the two hundred parameters of a task are three thousand requests: for the long form."""


@pytest.fixture
def known(db: None) -> Iterator[dict[str, Any]]:
    """A value that there is for each name in an address; the connection is left as it is between requests."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    with connection.cursor() as cursor:  # the test holds a transaction while schemathesis thinks of what to ask
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    queue, _ = grid("ALPHA", "BETA")
    catalogue_dataset("mc23.input", 2)
    task = submitted(reading("mc23.reco", "mc23.input"))
    submitted(parameters("mc23.evgen"))
    run_agents()
    leased = try_take(queue)
    assert leased is not None
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="ada", why="slow links")
    boss = ensure_user("boss", superuser=True, roles=[("demo", role) for role in ("submitter", "operator", "production")])
    dataset = Dataset.objects.get(task=task, type="input")
    yield {
        "task_id": task.id, "job_id": leased.job_id, "dataset_id": dataset.id, "decision_id": Decision.objects.latest("id").id,
        "file_id": File.objects.filter(dataset=dataset).latest("id").id, "name": "ALPHA", "site": "SITE_ALPHA",
        "source": "SITE_ALPHA", "destination": "SITE_BETA", "pilot_id": str(pilot(queue, "known")), **_steered(boss),
    }  # fmt: skip
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def _steered(boss: User) -> dict[str, Any]:
    """What a user has made, and others have proposed."""
    proposed = propose(Draft([named_line("config", "feeds.FEED_MAX_LOSS", "", "0.5")], "bob", "more may go", "page"))
    assert proposed is not None
    caller = principal_of_token(issue_user_token(boss).text)
    begun = start(caller, Wish("tasks", "pause", [1], clock.now(), {"vo": "demo"}))
    granted = ReadGrant.objects.create(vo="demo", pattern="mc23.*", grantee_kind="user", grantee="eve")
    view = SavedView.objects.create(owner="boss", list_name="tasks", name="mine", query="status=pending")
    return {
        "proposal_id": proposed.id, "action_id": begun.id, "grant_id": granted.id, "view_id": view.id, "revision": 1,
        "token_id": Credential.objects.filter(user=boss).latest("id").id,
    }  # fmt: skip


@pytest.fixture
def document(known: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[Any]:
    """The interface as schemathesis reads it."""
    request.node._nodeid = request.node.nodeid  # schemathesis asks for it by the name that it had before pytest 9.2
    enrolment = issue_enrolment("ALPHA", site="SITE_ALPHA", vo="demo").text
    of_pilot = issue_pilot_token(
        principal_of_token(enrolment), pilot(ComputingQueue.objects.get(name="ALPHA")), queue="ALPHA"
    ).text
    job = Job.objects.get(id=known["job_id"])
    may_submit = ensure_user("ada", roles=[("demo", role) for role in ("submitter", "operator", "production")])
    tokens = {
        "submitter": issue_user_token(may_submit).text,
        "enrolment": enrolment,
        "pilot": of_pilot,
        "job": mint_job_token(job.id, job.epoch, 3600),
    }
    user = _shown(issue_user_token(User.objects.get(username="boss")).text)
    config = SchemathesisConfig.from_dict(
        {
            "headers": user,
            "operations": [
                *({"include-operation-id": OF_KINDS[kind], "headers": _shown(tokens[kind])} for kind in tokens),
                # Entries are judged one by one: each that the document forbids is answered by a problem of its own.
                {
                    "include-operation-id": ["reports"],
                    "checks": {"negative_data_rejection": {"expected-statuses": ["200", "4xx"]}},
                },
                *SHORT,
            ],
            # A NUL character is refused wherever it stands, which a schema does not say: `test_fuzz.py` sends many.
            "generation": {"allow-x00": False, "deterministic": True, "max-examples": EXAMPLES or (100 if THOROUGH else 2)},
            "checks": {
                # A body that is longer than the document allows may be longer than the server reads at all.
                "negative_data_rejection": {
                    "expected-statuses": ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429"]
                },
                # What a name stands for and what goes together is no matter of a schema. `test_every_operation...` looks at why
                # a request was refused that the document allows.
                "positive_data_acceptance": {"expected-statuses": ["2xx", "400", "403", "404", "409", "410", "422", "503"]},
            },
        }
    )
    with override_settings(CACHES={"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}):  # no limit of asks
        yield schemathesis.openapi.from_wsgi("/api/v1/schema/?format=json", application, config=config, headers=user)
    if (terminal := request.config.pluginmanager.get_plugin("terminalreporter")) is not None:  # seen with -s
        told = f"{answered.total()} of {generated.total()} requests were sent to {len(answered)} operations"
        terminal.write_line(f"schemathesis: {told}")


def _shown(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def chosen(n: int, dice: Random) -> bool:
    """Whether the request with this number, from 0 on, is among those of a usual run."""
    return THOROUGH or n < FEW // 2 or dice.random() < FEW / (n + 1)


api = schemathesis.pytest.from_fixture("document")


@api.parametrize()
def test_every_operation_answers_as_the_document_says(case: Case, known: dict[str, Any]) -> None:
    label = case.operation.label
    generated[label] += 1
    if not chosen(generated[label] - 1, Random(f"{label} {generated[label]}")):
        return
    allowed = case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE
    if allowed:
        case.path_parameters |= {name: value for name, value in known.items() if name in case.path_parameters}
        if isinstance(case.body, dict):
            case.body |= {name: value for name, value in KNOWN_IN_BODIES.items() if name in case.body}
    STRANGERS.forget()  # callers without a credential may ask a few times only
    for pace in (REGISTERING, ASKING_FOR_OUTCOMES, MATCHING, FINISHING, REPORTING):
        pace.forget()
    with transaction.atomic():
        answer = case.call()
        answered[label] += 1
        try:
            case.validate_response(answer)
        finally:
            transaction.set_rollback(True)
    if allowed and answer.status_code in (400, 422):
        broken = {f["rule"] for f in answer.json().get("errors", ()) if f["field"] not in NEEDED_WITH_ANOTHER}
        assert not broken & SAID_BY_THE_DOCUMENT, f"{case.as_curl_command()}\nwhich the document allows: {answer.text}"
