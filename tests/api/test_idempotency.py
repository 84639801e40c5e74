"""One key, one task: whoever repeats a submission gets the first task, also at the same moment."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from tests.api.people import Person, faults
from tests.builders import parameters
from workqueues.models import Submission, Task, TaskChange

THREADS = 4


@pytest.mark.django_db
def test_a_repeated_submission_gives_the_first_task(ada: Person) -> None:
    first, second = ada.submit(parameters(), "k1"), ada.submit(parameters(), "k1")
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert Task.objects.count() == 1


@pytest.mark.django_db
def test_the_order_of_members_and_white_space_do_not_make_another_body(ada: Person) -> None:
    ada.submit(parameters(), "k1")
    turned = dict(reversed(parameters().items()))
    assert ada.submit(turned, "k1").status_code == 200


@pytest.mark.django_db
def test_the_same_key_with_another_body_is_refused(ada: Person) -> None:
    first = ada.submit(parameters(), "k1").json()["id"]
    assert faults(ada.submit(parameters(taskPriority=1), "k1")) == {("Idempotency-Key", "same_body")}
    assert list(Task.objects.values_list("id", flat=True)) == [first]


@pytest.mark.django_db
def test_without_a_key_every_submission_is_a_task(ada: Person) -> None:
    assert [ada.submit(parameters(name) | {"taskName": "t1"}).status_code for name in ("t1", "t2")] == [201, 201]
    assert Task.objects.count() == 2


@pytest.mark.django_db
def test_keys_of_different_users_are_different(ada: Person, bob: Person) -> None:
    assert ada.submit(parameters(userName=None), "k1").status_code == 201
    assert bob.submit(parameters("t2", userName=None), "k1").status_code == 201


@pytest.mark.django_db
def test_a_key_belongs_to_who_submits_not_to_the_owner(ada: Person, petra: Person) -> None:
    assert petra.submit(parameters(userName="ada"), "k1").status_code == 201
    assert ada.submit(parameters("mine"), "k1").status_code == 201


@pytest.mark.django_db
def test_a_refused_submission_does_not_use_the_key_up(ada: Person) -> None:
    faults(ada.submit(parameters(taskPriority="x"), "k1"))
    assert ada.submit(parameters(), "k1").status_code == 201


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["k" * 256, "k\x7f", "schl\u00fcssel"])
def test_a_key_that_is_none_is_refused(ada: Person, key: str) -> None:
    assert faults(ada.submit(parameters(), key), 400) == {("Idempotency-Key", "format")}


@pytest.mark.django_db
def test_a_repeated_unique_name_with_its_key_is_the_first_task(ada: Person) -> None:
    unique = parameters(uniqueTaskName=True)
    assert [ada.submit(unique, "k1").status_code for _ in range(2)] == [201, 200]


def at_once(n: int, submit: Any) -> list[Any]:
    """Call in so many threads at the same moment, each with a connection of its own: the answers."""
    barrier = Barrier(n)

    def run(number: int) -> Any:
        barrier.wait()
        try:
            return submit(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(run, range(n)))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("round_", range(3))
def test_submissions_with_one_key_at_the_same_moment_are_one_task(ada: Person, round_: int) -> None:
    answers = at_once(THREADS, lambda _: ada.submit(parameters(), "k1"))
    assert Counter(a.status_code for a in answers) == {201: 1, 200: THREADS - 1}
    assert len({a.json()["id"] for a in answers}) == 1
    assert (Task.objects.count(), Submission.objects.count(), TaskChange.objects.count()) == (1, 1, 1)


@pytest.mark.django_db(transaction=True)
def test_different_bodies_with_one_key_at_the_same_moment_are_one_task_and_refusals(ada: Person) -> None:
    answers = at_once(THREADS, lambda n: ada.submit(parameters(taskPriority=n), "k1"))
    assert Counter(a.status_code for a in answers) == {201: 1, 422: THREADS - 1}
    assert Task.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_unique_name_at_the_same_moment_is_taken_once(ada: Person) -> None:
    answers = at_once(THREADS, lambda _: ada.submit(parameters(uniqueTaskName=True)))
    assert Counter(a.status_code for a in answers) == {201: 1, 422: THREADS - 1}
    assert Task.objects.count() == 1
