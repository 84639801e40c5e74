"""What is said no to: the exit code says of which kind it is, standard error names field and rule, nothing is changed."""

from __future__ import annotations

import json
import time

import pytest
import redis

from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.gdpconfig import set_override
from tests.builders import grid, parameters, submitted
from tests.client.broker import Broker, fields
from tests.client.conftest import BrokerOf
from workqueues.models import Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]


def test_a_token_that_is_not_good_is_4_and_says_how_to_get_one(ada: Broker) -> None:
    for token in ("gbu_" + "x" * 43, ""):
        said = ada("ls", GRIDBROKER_TOKEN=token)
        assert (said.code, said.out) == (4, "")
        assert "broker: Not authenticated" in said.err
        assert "broker login URL --token" in said.err
    torn = ada("ls", GRIDBROKER_TOKEN="gbu_a\nHost: elsewhere")
    assert (torn.code, "Not a token" in torn.err) == (2, True)


def test_a_right_that_one_has_not_is_4(ada: Broker, broker_of: BrokerOf) -> None:
    grid()
    task = submitted(parameters("t1"))
    bob = broker_of("bob", ("demo", "submitter"))
    said = bob("kill", str(task.id))
    assert (said.code, said.out) == (4, "")
    assert f"{task.id}: Not permitted" in said.err
    assert Task.objects.get().status == "registered"


@pytest.mark.parametrize("verb", ["show", "kill", "why", "watch", "job show", "job kill", "logs", "get"])
def test_what_is_not_there_or_not_shown_is_3(verb: str, ada: Broker, broker_of: BrokerOf) -> None:
    task = submitted(parameters("t1"))
    eve = broker_of("eve", ("other", "submitter"))
    for broker, number in ((ada, 999_999), (eve, task.id)):
        said = broker(*verb.split(), str(number))
        assert (said.code, said.out) == (3, ""), said.err
    assert "not" in said.err.lower()


def test_a_state_that_forbids_a_command_is_5_and_says_which_do_not(ada: Broker) -> None:
    task = submitted(parameters("t1"))
    said = ada("resume", str(task.id))
    assert said.code == 5
    assert "paused" in said.err


def test_a_misspelt_filter_is_5_and_the_nearest_is_named(ada: Broker) -> None:
    said = ada("ls", "statsu=running")
    assert (said.code, fields(said)) == (5, {("statsu", "unknown")})
    assert "status" in said.err
    said = ada("ls", "-s", "runing")
    assert (said.code, fields(said)) == (5, {("status", "invalid_choice")})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ls", "status"), "NAME=VALUE"),
        (("show", "seven"), "Not a number"),
        (("ls", "--since", "yesterday"), "Not a time span"),
        (("ls", "--since", "999999w"), "Not a time span"),
        (("queue", "set", "ALPHA", "status=offline", "--reason", "x", "--for", "999999w"), "Not a time span"),
        (("ls", "-n", "-3"), "Not a number of rows"),
        (("submit",), "What is to be submitted?"),
        (("submit", "missing.json"), "missing.json cannot be read"),
        (("submit", "--name", "t", "--vo", "demo", "--", "run.py", "%INN"), "Nothing is called %INN"),
        (("api", "GET", "http://127.0.0.1:1/x"), "Not a path"),
        (("api", "TRACE", "/tasks/"), "Not a method"),
        (("frobnicate",), "invalid choice"),
        (("shares",), "the nearest one is 'share'"),
        (("show", "1", "2"), "unrecognized arguments: 2"),
        (("ls", "-n", "1", "status=done", "--frob"), "unrecognized arguments: --frob"),
        (("login", "--check", "http://a", "http://b"), "unrecognized arguments"),
        (("ls", "--json=id,nothing"), "No field nothing"),
    ],
)
def test_what_cannot_be_understood_is_2_and_nothing_is_sent(words: tuple[str, ...], told: str, ada: Broker) -> None:
    submitted(parameters("t1"))
    said = ada(*words)
    assert (said.code, said.out, told in said.err) == (2, "", True), said.err


def test_a_limit_that_no_waiting_lifts_is_told_at_once_with_its_field(ada: Broker) -> None:
    set_override("dbproxy", "MAX_ACTIVE_TASKS_PER_USER_user", 1, app="pandaserver", who="test", why="few at once")
    time.sleep(2)  # so long may the server go by what held before
    codes = []
    for name in ("t1", "t2", "t3"):
        said = ada("submit", "-", stdin=json.dumps(parameters(name)))
        codes.append(said.code)
    assert codes == [0, 0, 6]
    assert fields(said) == {("userName", "active_tasks")}
    assert "ada has more than 1 active user tasks in VO demo" in said.err


def test_too_many_submissions_are_waited_out_as_the_server_asks(ada: Broker, redis_url: str) -> None:
    """The counts of this minute and the next are as if 600 had been sent, until the client waits for the end of its minute."""
    key = principal_of_token(ada.environ["GRIDBROKER_TOKEN"]).key
    store = redis.Redis.from_url(redis_url)
    used = ada("submit", "-", "-q", stdin=json.dumps(parameters("t0")))
    assert used.code == 0
    (count,) = store.scan_iter(f"*throttle:submit:{key}:*")
    of_all, _, minute = count.decode().rpartition(":")
    counts = [f"{of_all}:{int(minute) + later}" for later in range(3)]
    for each in counts:
        store.set(each, 600, ex=240)
    said = ada("submit", "-", stdin=json.dumps(parameters("t1")), GRIDBROKER_PATIENCE="0.5")
    assert said.code == 6
    assert "Too many requests" in said.err
    running = ada.begin("submit", "--name", "t2", "--vo", "demo", "--jobs", "1", "-q", "--", "run.py", GRIDBROKER_PATIENCE="150")
    assert running.stderr is not None
    assert "the server is busy (429), next try in" in running.stderr.readline()
    store.delete(*counts[1:])
    out, err = running.communicate(timeout=150)
    assert running.returncode == 0, err
    assert out.strip() == str(Task.objects.get(task_name="t2").id)
