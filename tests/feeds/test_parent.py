"""Speaking to the parent: an answer as declared or a reason in plain words, in time, whatever the other side does."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from brokerage.feeds import parent as speaking
from brokerage.feeds.parent import Parent, ParentUnavailable
from tests.feeds.conftest import Handler, Place
from workqueues.rules.elements.messages import Report

PATH = "/api/v1/tree/report/"
REPLY = {"protocol": 1, "version": "1", "instance": "i", "incarnation": "j", "now": "k", "lineage": []}


def message() -> Report:
    return Report(protocol=1, version="1", instance=uuid4(), incarnation=uuid4(), now=datetime.now(UTC), elements=[])


def reason(place: Place, timeout_s: float = 5.0, url: str = "") -> str:
    with pytest.raises(ParentUnavailable) as down:
        Parent(url or f"http://{place.host}", "token", timeout_s).report(message())
    return str(down.value)


def test_an_answer_is_read_and_what_it_has_beyond_is_passed_over(place: Place) -> None:
    verdict = {"id": 5, "try_nr": 1, "verdict": "held", "new_word": 3}
    place.put(PATH, {**REPLY, "elements": [verdict], "new_field": 1})
    answer = Parent(f"http://{place.host}", "token", 5.0).report(message())
    assert (answer.elements[0].id, answer.elements[0].verdict) == (5, "held")


def test_the_token_goes_with_each_message_below_the_path_of_the_address(place: Place) -> None:
    seen: list[str | None] = []

    def answer(handler: Handler) -> None:
        seen.append(handler.headers["Authorization"])
        handler.send_error(403)

    place.answering(f"/broker{PATH}", answer)
    assert "403" in reason(place, url=f"http://{place.host}/broker")
    assert seen == ["Bearer token"]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (422, {"detail": "version 1 is not spoken here"}, "refused (422): version 1 is not spoken here"),
        (401, "<html>", "refused (401): the parent does not know our token"),
        (500, "oops", "refused (500): it gives no reason"),
        (503, [1], "refused (503): it gives no reason"),
        (302, "", "it sends us elsewhere (302), where our token does not go"),
        (200, "<html>", "the answer is no JSON"),
        (200, {**REPLY, "protocol": 2}, "speaks version 2 of the messages, this broker version 1"),
        (200, [1], "speaks version None"),
        (200, {**REPLY, "elements": [{"id": "x"}]}, "the answer to report cannot be used: elements[0]"),
    ],
)
def test_what_is_wrong_with_an_answer_is_told(place: Place, status: int, body: Any, words: str) -> None:
    place.put(PATH, body, status, Location="http://127.0.0.1:9/")
    assert words in reason(place)


def test_a_parent_that_drips_or_says_too_much_or_too_little_is_left_in_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    place.dripping(PATH, head + b"Content-Length: 100000\r\n\r\n", b" ")
    began = time.monotonic()
    assert reason(place, 0.4) == "no whole answer within 0.4 s"
    assert time.monotonic() - began < 2
    place.raw(PATH, head + b"Content-Length: 100\r\n\r\n{}")
    assert "98 bytes too early" in reason(place)
    monkeypatch.setattr(speaking, "LARGEST_ANSWER", 1000)
    place.put(PATH, {**REPLY, "more": "x" * 2000})
    assert "more than 1,000 bytes" in reason(place)
    place.raw(PATH, b"not HTTP")
    assert "does not answer" in reason(place)


def test_nobody_and_somebody_without_a_certificate_do_not_answer(place: Place) -> None:
    assert "does not answer" in reason(place, url="http://127.0.0.1:9")
    assert "does not answer" in reason(place, url=f"https://{place.host}")
