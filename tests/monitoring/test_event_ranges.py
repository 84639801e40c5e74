"""What pages show of jobs that share a file by events, and of secondary datasets."""

from __future__ import annotations

import pytest
from django.test import Client

from monitoring.queries.task import dealt_out
from tests.cutting import cut, end, shared
from tests.monitoring.answers import text
from tests.pages.scene import visitor

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client: Client) -> Client:
    client.force_login(visitor())
    return client


def test_a_job_shows_which_events_of_its_file_it_has_and_what_became_of_them(page: Client) -> None:
    of = shared([30])
    first, second = cut(of, 10, most=2)
    end(first, "finished")
    told = text(page.get(f"/jobs/{first}/"))
    assert "0 to 9 of 30" in told
    assert "Its events are processed." in told
    told = text(page.get(f"/jobs/{second}/"))
    assert "10 to 19 of 30" in told
    assert "Its job waits for a pilot or runs." in told


def test_a_task_shows_how_many_events_are_done_and_how_secondary_datasets_are_dealt_out(page: Client) -> None:
    of = shared([30])
    (job,) = cut(of, 10, most=1)
    end(job, "finished")
    assert "10 done" in text(page.get(f"/tasks/{of.task.id}/"))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("", "1 for each file"),
        ("ratio=0.5", "0.5 for each file"),
        ("np=2", "2 a job"),
        ("er=1.5,repeat", "1.5 events for each event, used again and again"),
        ("nosplit", "all files to every job"),
    ],
)
def test_how_a_secondary_dataset_is_dealt_out_in_words(attributes: str, words: str) -> None:
    assert dealt_out(attributes) == words
