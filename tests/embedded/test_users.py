"""Users of an instance's own: for PostgreSQL and for the payloads of each slot, where root runs all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from broker_site.roof.embedded.users import own_user
from broker_site.roof.supervisor import local_site


def test_payloads_of_local_pilots_have_rights_of_their_own_or_one_line_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = local_site.payload_rights(tmp_path)
    if os.geteuid() == 0:
        assert (rights.own_users, rights.note) == (True, "")
        users = {own_user(tmp_path, f"slot ALPHA-{n}").uid for n in range(3)} | {own_user(tmp_path, "postgres").uid}
        assert len(users) == 4
        assert own_user(tmp_path, "postgres").uid in users, "it keeps its user"
        assert min(users) > 1000
    monkeypatch.setattr(local_site, "SOFTWARE", tmp_path / "nowhere")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    local_site.payload_rights.cache_clear()  # a process tries it once
    rights = local_site.payload_rights(tmp_path)
    assert not rights.own_users
    assert rights.note.startswith("payloads run with ")
    assert "\n" not in rights.note
    local_site.payload_rights.cache_clear()
