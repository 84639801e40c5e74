"""Where a task stands is told in one sentence, the same on its pages, by REST, by the client and by the command of operators."""

from __future__ import annotations

import html
import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from broker_site.foundation.access.credentials import issue_user_token
from brokerage.models import Site, StorageEndpoint
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from tests.monitoring.answers import text
from tests.pages.scene import make_scene, visitor

pytestmark = pytest.mark.django_db


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("explain", *arguments, stdout=out)
    return out.getvalue()


def test_page_rest_and_command_tell_the_state_of_every_task_alike() -> None:
    scene = make_scene()
    ada = visitor()
    browser, program = Client(), Client(headers={"Authorization": f"Bearer {issue_user_token(ada).text}"})
    browser.force_login(ada)
    for task in (scene.done, scene.failed, scene.retrying, scene.running, scene.pending, scene.aborted, scene.fresh):
        status = program.get(f"/api/v1/tasks/{task.id}/waiting/").json()
        sentence = status["headline"]
        assert sentence, task.task_name
        assert sentence in told(str(task.id)), task.task_name
        assert json.loads(told(str(task.id), "--json"))["waiting"]["headline"] == sentence
        for page in (f"/tasks/{task.id}/", f"/tasks/{task.id}/brokerage/"):
            shown = html.unescape(text(browser.get(page)))
            assert sentence in shown, (page, sentence)


def test_waiting_is_not_promised_to_help_where_no_queue_takes_the_jobs_of_a_site() -> None:
    grid("ALPHA")
    StorageEndpoint.objects.update(free_gb=50_000)
    Site.objects.update(nucleus=True)
    task = submitted(parameters(taskType="prod", prodSourceLabel="managed", ramCount=64000))
    run_agents(1, ("refine", "feed", "assign"))
    browser = Client()
    browser.force_login(visitor())
    page = text(browser.get(f"/tasks/{task.id}/brokerage/"))
    assert "its jobs can run nowhere" in page
    assert "yes: some fail only what may pass" not in page
    assert f'if its jobs can: no queue takes them, and <a href="/tasks/{task.id}/brokerage/what-if/">' in page
    looked = text(browser.get(f"/tasks/{task.id}/brokerage/what-if/?ramCount=500"))
    assert f'is changed on <a href="/tasks/{task.id}/">its page</a>' in looked
