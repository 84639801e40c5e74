"""The real server: a guesser of passwords is slowed down, the owner of the account is not locked out."""

from __future__ import annotations

import re
import time
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

import pytest

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from tests.web.serving import Server, serving

PASSWORD = "correct horse battery"
FORM = "application/x-www-form-urlencoded"

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]


class Visitor:
    """A browser at a server whose proxy says from where it comes."""

    def __init__(self, server: Server, address: str) -> None:
        self.server, self.address = server, address
        self.cookies: dict[str, str] = {}

    def ask(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, dict[str, str], str]:
        headers = {"Host": "localhost", "X-Forwarded-Proto": "https", "X-Forwarded-For": f"203.0.113.200, {self.address}"}
        headers |= {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        headers |= {"Referer": f"https://localhost{path}", "Content-Type": FORM}
        status, answer, body = self.server.ask(method, path, urlencode(form).encode() if form else None, headers)
        for line in answer.get("set-cookie", "").split("\n"):
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
        return status, answer, body.decode()

    def login(self, path: str, name: str, password: str) -> tuple[int, dict[str, str], str]:
        page = self.ask("GET", path)[2]
        (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[:1])
        return self.ask("POST", path, {"username": name, "password": password, "csrfmiddlewaretoken": token})


def test_of_twenty_wrong_passwords_two_processes_together_look_at_five_a_minute(redis_url: str, tmp_path: Path) -> None:
    ensure_user("root", superuser=True, password=PASSWORD)
    log = tmp_path / "rsgi.log"
    with serving(
        log, "--workers", "2", REDIS_URL=redis_url, TLS_PROXY_HEADER="X-Forwarded-Proto: https", PYTHONUNBUFFERED="1"
    ) as server:
        guesser = Visitor(server, "198.51.100.7")
        began = time.monotonic()
        answers = [guesser.login(("/login/", "/admin/login/")[i % 2], "root", f"guess {i}") for i in range(20)]
        minutes = (time.monotonic() - began) / 60
        looked_at = [status for status, _, _ in answers].count(200)
        assert 5 <= looked_at <= 5 + 5 * minutes
        status, headers, page = next(answer for answer in answers if answer[0] != 200)
        assert status == 429
        assert 1 <= int(headers["retry-after"]) <= 120
        assert "Too many tries" in page
        assert "Trace id" in page
        assert Visitor(server, "198.51.100.8").login("/login/", "somebody", "else")[0] == 200, "another account, another address"
    rows = Audit.objects.filter(act="login", object="user root")
    assert rows.filter(status=200).count() == looked_at
    assert {(row.after or {})["address"] for row in rows} == {"198.51.100.7"}
    assert "login of user root from 198.51.100.7 refused" in log.read_text()
