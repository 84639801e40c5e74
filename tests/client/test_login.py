"""`login`: what is kept, for whom to read, and what goes before it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.builders import parameters, submitted
from tests.client.broker import Broker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]


@pytest.fixture
def nobody(ada: Broker) -> Broker:
    """The command of somebody whose environment says nothing."""
    environ = {name: value for name, value in ada.environ.items() if not name.startswith("GRIDBROKER_")}
    return Broker(ada.file, ada.folder, environ)


def kept(broker: Broker) -> Path:
    return broker.folder / ".config" / "gridbroker" / "client.json"


def test_a_token_is_kept_for_its_owner_alone_once_the_server_has_taken_it(ada: Broker, nobody: Broker, url: str) -> None:
    task = submitted(parameters("t1"))
    token = ada.environ["GRIDBROKER_TOKEN"]
    assert nobody("ls").code == 2
    wrong = nobody("login", url, "--token", stdin="gbu_wrong\n")
    assert (wrong.code, kept(nobody).exists()) == (4, False)
    said = nobody("login", f"{url}/", "--token", stdin=f"{token}\n")
    assert said.code == 0, said.err
    assert stat.S_IMODE(kept(nobody).stat().st_mode) == 0o600
    assert stat.S_IMODE(kept(nobody).parent.stat().st_mode) == 0o700
    assert json.loads(kept(nobody).read_text()) == {"url": url, "token": token}
    assert nobody("ls", "-q").out == f"{task.id}\n"
    check = nobody("login", "--check")
    assert check.rows[0] == ["server", url, f"from {kept(nobody)}"]
    assert token[:12] in check.out
    assert token not in check.out + check.err + said.out + said.err
    assert [each.name for each in kept(nobody).parent.iterdir()] == ["client.json"]


def test_a_token_is_typed_unseen(ada: Broker, nobody: Broker, url: str) -> None:
    token = ada.environ["GRIDBROKER_TOKEN"]
    said = nobody.on_terminal("login", url, "--token", typed=f"{token}\n", at="Token for")
    assert said.code == 0, said.out
    assert f"Token for {url}:" in said.out
    assert token not in said.out


def test_a_file_that_others_can_read_is_not_used(nobody: Broker, url: str) -> None:
    kept(nobody).parent.mkdir(parents=True)
    kept(nobody).write_text(json.dumps({"url": url, "token": "gbu_x"}))
    kept(nobody).chmod(0o644)
    said = nobody("ls")
    assert (said.code, "can be read by others" in said.err, f"chmod 600 {kept(nobody)}" in said.err) == (2, True, True)
    kept(nobody).chmod(0o600)
    kept(nobody).write_text("[1")
    assert (nobody("ls").code, "cannot be read" in nobody("ls").err) == (2, True)


def test_a_kept_token_goes_to_the_server_that_it_is_for_and_to_no_other(ada: Broker, nobody: Broker, url: str) -> None:
    nobody("login", url, "--token", stdin=ada.environ["GRIDBROKER_TOKEN"])
    said = nobody("ls", GRIDBROKER_URL="http://127.0.0.1:9")
    assert (said.code, "No token for http://127.0.0.1:9" in said.err) == (2, True)
    assert nobody("ls", GRIDBROKER_TOKEN="gbu_other").code == 4, "the environment goes before the file"
    elsewhere = nobody("ls", XDG_CONFIG_HOME=str(nobody.folder / "other"))
    assert (elsewhere.code, "No server" in elsewhere.err) == (2, True)


@pytest.mark.parametrize("url", ["ftp://a", "a.example", "http://u:p@a", "http://a?x=1", "http://", "http://a:b"])
def test_what_is_no_address_of_a_server_is_refused(url: str, nobody: Broker) -> None:
    said = nobody("login", url, "--token", stdin="gbu_x\n")
    assert (said.code, "Not the address of a server" in said.err) == (2, True)


def test_whoami_tells_name_and_roles_and_as_json_what_they_allow(ada: Broker) -> None:
    said = ada("whoami")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[0] == "ada"
    assert "demo: " in said.out
    (me,) = ada("whoami", "--json").documents
    assert "task:submit" in me["permissions"]
    assert "config:edit" not in me["permissions"]
