"""The commands that a page offers find what the page shows."""

from __future__ import annotations

import html
import re
import shlex

import pytest
from django.test import Client

from tests.builders import parameters, submitted
from tests.client.broker import Broker
from tests.pages.scene import visitor
from workqueues.models import Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]


def test_the_command_of_a_list_lists_the_same_and_that_of_a_task_shows_it(ada: Broker) -> None:
    names = ("mc23.a", "it's; rm -rf $HOME", "mc23.b,c")
    for name in names:
        task = submitted(parameters("t"))
        Task.objects.filter(id=task.id).update(task_name=name)
    pages = Client()
    pages.force_login(visitor())
    query = {"task_name": '"it\'s; rm -rf $HOME","mc23.b,c"', "status": "!done"}
    command, curl = copied(pages.get("/tasks/", query).content.decode())
    verb, *words = shlex.split(command)
    wanted = list(Task.objects.filter(task_name__in=names[1:]).order_by("-id").values_list("id", flat=True))
    assert (verb, ada(*words, "-q").out.split()) == ("broker", [str(number) for number in wanted])
    address = shlex.split(curl)[-1]
    found = pages.get(address.removeprefix("http://testserver")).json()["results"]
    assert [row["id"] for row in found] == wanted
    verb, *words = shlex.split(copied(pages.get(f"/tasks/{wanted[0]}/").content.decode())[0])
    assert f"{wanted[0]}" in ada(*words).out


def copied(page: str) -> list[str]:
    """The commands of a page."""
    return [html.unescape(text) for text in re.findall(r"<code>((?:broker|curl) [^<]*)</code>", page)]
