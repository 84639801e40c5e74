"""Passwords cannot be guessed: tries are limited by address and account, each is told in audit and log, nobody is locked out."""

from __future__ import annotations

import logging

import pytest
from django.core.cache import cache
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from broker_site.foundation.access import counting, login_limits
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.login_limits import COOKIE, PER_ACCOUNT, PER_ADDRESS, WINDOW_S, wait_s
from broker_site.foundation.access.models import Audit, User
from broker_site.foundation.access.strangers import ROWS

PASSWORD, WRONG = "correct horse battery", "wrong"
LOGINS = ["/login/", "/admin/login/"]

pytestmark = pytest.mark.django_db


class Clock:
    """The time of the limits, set by hand; a window has just begun."""

    def __init__(self) -> None:
        self.now = 1_000_000_020.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(login_limits, "time", own)
    monkeypatch.setattr(counting, "_blind_until", float("inf"))  # no Redis: each process counts by itself
    return own


@pytest.fixture
def root(db: None) -> User:
    return ensure_user("root", superuser=True, password=PASSWORD)


def login(client: Client, address: str, name: str = "root", password: str = WRONG, where: str = "192.0.2.7") -> int:
    return client.post(address, {"username": name, "password": password}, REMOTE_ADDR=where).status_code


@pytest.mark.parametrize("address", LOGINS)
def test_an_account_takes_five_wrong_passwords_a_minute_from_anywhere(root: User, address: str, clock: Clock) -> None:
    answers = [login(Client(), address, where=f"192.0.2.{i}") for i in range(40)]
    assert answers == [200] * PER_ACCOUNT + [429] * (40 - PER_ACCOUNT)
    refused = Client().post(address, {"username": "root", "password": PASSWORD}, REMOTE_ADDR="192.0.2.99")
    assert refused.status_code == 429, "the right password is not even looked at"
    clock.now += int(refused["Retry-After"])
    assert login(Client(), address, password=PASSWORD, where="192.0.2.99") == 302


@pytest.mark.parametrize("address", LOGINS)
def test_an_address_takes_ten_a_minute_whatever_the_account(root: User, address: str, clock: Clock) -> None:
    answers = [login(Client(), address, f"user{i}") for i in range(40)]
    assert answers == [200] * PER_ADDRESS + [429] * (40 - PER_ADDRESS)
    assert login(Client(), address, password=PASSWORD, where="192.0.2.8") == 302, "others are not held up"
    clock.now += 2 * WINDOW_S
    assert login(Client(), address, "user1") == 200


def test_both_pages_share_the_limits(root: User) -> None:
    answers = [login(Client(), LOGINS[i % 2], where=f"192.0.2.{i}") for i in range(8)]
    assert answers == [200] * PER_ACCOUNT + [429] * 3


def test_an_account_that_there_is_not_is_refused_alike(root: User) -> None:
    known, unknown = (
        [Client().post("/login/", {"username": name, "password": "x"}, REMOTE_ADDR="192.0.2.7") for _ in range(PER_ACCOUNT + 1)]
        for name in ("root", "nobody")
    )
    assert [each.status_code for each in known] == [each.status_code for each in unknown]
    assert known[-1].status_code == 429
    assert "Try again in" in known[-1].text


def test_a_browser_that_signed_in_before_is_not_held_up_by_guesses_of_others(root: User) -> None:
    mine = Client()
    assert login(mine, "/login/", password=PASSWORD) == 302
    assert mine.cookies[COOKIE]["httponly"]
    mine.post("/logout/")
    for i in range(40):
        login(Client(), "/login/", where=f"192.0.2.{i % 3}")
        login(Client(), "/login/", f"user{i}")
    assert login(Client(), "/login/", password=PASSWORD, where="192.0.2.99") == 429
    assert login(mine, "/login/", password=PASSWORD) == 302


def test_the_mark_of_a_browser_is_good_for_its_account_alone_and_not_for_guessing(root: User) -> None:
    ensure_user("eve", password=PASSWORD)
    mine = Client()
    login(mine, "/login/", "eve", PASSWORD)
    mine.post("/logout/")
    assert [login(mine, "/login/", where=f"192.0.2.{i}") for i in range(7)] == [200] * 5 + [429] * 2
    assert [login(mine, "/login/", "eve") for i in range(7)] == [200] * 5 + [429] * 2
    mine.cookies[COOKIE] = mine.cookies[COOKIE].value + "x"
    assert login(mine, "/login/", where="192.0.2.99") == 429


def test_good_logins_do_not_count(root: User) -> None:
    assert {login(Client(), "/login/", password=PASSWORD) for _ in range(30)} == {302}


def test_an_incomplete_form_is_no_try(root: User) -> None:
    assert {login(Client(), "/login/", password="") for _ in range(30)} == {200}
    assert not Audit.objects.filter(act="login").exists()


def test_every_login_is_in_audit_and_log(root: User, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    login(Client(), "/login/")
    login(Client(), "/admin/login/", password=PASSWORD)
    login(Client(), "/login/", "hunter2")  # a password, typed into the wrong field
    login(Client(), "/admin/login/", ensure_user("plain", password=PASSWORD).username, PASSWORD)
    rows = Audit.objects.filter(act="login").order_by("id").values_list("who", "kind", "object", "outcome", "reason", "status")
    assert list(rows) == [
        ("anonymous", "anonymous", "user root", "refused", "not accepted", 200),
        ("root", "user", "user root", "done", "", None),
        ("anonymous", "anonymous", "unknown user", "refused", "not accepted", 200),
        ("anonymous", "anonymous", "user plain", "refused", "not accepted", 200),
    ]
    assert {(row.after or {})["address"] for row in Audit.objects.filter(act="login")} == {"192.0.2.7"}
    said = [r.getMessage() for r in caplog.records if r.name.endswith("logins")]
    assert said == [
        "login of user root from 192.0.2.7 refused: not accepted",
        "login of root from 192.0.2.7",
        "login of unknown user from 192.0.2.7 refused: not accepted",
        "login of user plain from 192.0.2.7 refused: not accepted",
    ]
    assert "hunter2" not in caplog.text


def test_each_password_that_was_looked_at_has_its_row_and_of_the_others_a_bounded_number(root: User, clock: Clock) -> None:
    for _ in range(4 * ROWS):
        login(Client(), "/login/")
    rows = Audit.objects.filter(act="login")
    assert [rows.filter(status=status).count() for status in (200, 429)] == [PER_ACCOUNT, ROWS]
    clock.now += 2 * WINDOW_S
    login(Client(), "/login/")
    assert rows.filter(status=200).count() == PER_ACCOUNT + 1


def test_memory_is_bounded(root: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_limits, "MOST_KEYS", 20)
    for i in range(60):
        login(Client(), "/login/", f"user{i}", where=f"198.51.100.{i}")
    assert len(login_limits._windows.now) <= 20 + 2
    assert login(Client(), "/login/", "another", where="203.0.113.1") == 429


@pytest.mark.servers
def test_tries_are_counted_for_all_web_processes_together(root: User, settings: Settings, redis_url: str, clock: Clock,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": redis_url}}
    monkeypatch.setattr(counting, "_blind_until", 0.0)
    cache.clear()
    answers = []
    for i in range(8):
        login_limits.forget()  # another process
        answers.append(login(Client(), "/login/", where=f"192.0.2.{i}"))
    assert answers == [200] * PER_ACCOUNT + [429] * 3
    login_limits.forget()
    clock.now += WINDOW_S + 1
    assert login(Client(), "/login/") == 429, "the window slides"
    clock.now += WINDOW_S
    assert login(Client(), "/login/", password=PASSWORD) == 302


def test_without_redis_each_process_counts_by_itself(root: User, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}}
    monkeypatch.setattr(counting, "_blind_until", 0.0)
    assert login(Client(), "/login/", password=PASSWORD) == 302
    assert [login(Client(), "/login/") for _ in range(7)] == [200] * PER_ACCOUNT + [429] * 2


@given(
    before=st.integers(0, 10), now=st.integers(0, 30), elapsed=st.floats(0, WINDOW_S, exclude_max=True), most=st.integers(1, 10)
)
def test_who_waits_as_long_as_told_comes_through(before: int, now: int, elapsed: float, most: int) -> None:
    wait = wait_s(before, now, elapsed, most)
    assert 0 <= wait <= 2 * WINDOW_S
    then = elapsed + wait + 0.001
    if then < WINDOW_S:
        assert wait_s(before, now, then, most) == 0
    elif then < 2 * WINDOW_S:
        assert wait_s(now, 0, then - WINDOW_S, most) == 0


@given(tries=st.lists(st.floats(0, 300), max_size=60), most=st.integers(1, 10))
def test_no_window_of_a_minute_holds_twice_as_many(tries: list[float], most: int) -> None:
    counts: dict[int, int] = {}
    passed = []
    for at in sorted(tries):
        number, elapsed = divmod(at, WINDOW_S)
        if not wait_s(counts.get(int(number) - 1, 0), counts.get(int(number), 0), elapsed, most):
            counts[int(number)] = counts.get(int(number), 0) + 1
            passed.append(at)
    assert all(sum(start <= at < start + WINDOW_S for at in passed) < 2 * most for start in passed)
