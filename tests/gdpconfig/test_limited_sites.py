"""Limits by sites are set for sites that the grid has: one of a mistyped name would limit nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig.keys import BadConfig
from brokerage.models import Site
from brokerage.plugins import check_named
from tests.api.people import faults, person
from tests.builders import grid

pytestmark = pytest.mark.django_db
SETTINGS = [("RUNNING_LIMITS", {"vo": {"demo": 1}}), ("MATCHING_DELAYS", {"owner": {"ada": 3}})]


def configure(key: str, **sites: Any) -> None:
    gdpconfig.set_override("dispatch", key, sites, who="ada", why="test")


@pytest.mark.parametrize(("key", "limits"), SETTINGS)
def test_a_limit_of_a_site_that_is_not_there_is_refused_with_the_nearest(key: str, limits: dict[str, Any]) -> None:
    grid("ALPHA", "BETA")
    with pytest.raises(BadConfig) as refused:
        configure(key, SITE_ALPHA=limits, SITE_APLHA=limits)
    (problem,) = refused.value.problems
    assert (problem.field, problem.rule) == ("value", "known")
    assert problem.message == f"{key}: the grid has no site SITE_APLHA; the nearest name is SITE_ALPHA"
    configure(key, SITE_ALPHA=limits)


def test_it_is_refused_over_rest_in_the_administration_and_at_the_terminal(client: Client, tmp_path: Path) -> None:
    grid("ALPHA")
    wrong = {"SITE_X": {"vo": {"demo": 1}}}
    lines = [{"key": "dispatch.RUNNING_LIMITS", "value": wrong}]
    answer = person("root", superuser=True).post("config/changes/", {"lines": lines, "reason": "ticket 7"})
    assert faults(answer, 422) == {("lines[0].value", "known")}
    client.force_login(get_user_model().objects.get(username="root"))
    form = {"value": json.dumps(wrong), "vo": "", "why": "ticket 7", "seen": 0}
    page = client.post("/admin/gdpconfig/override/add/?component=dispatch&name=RUNNING_LIMITS", form).content.decode()
    assert "the grid has no site SITE_X" in page
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"overrides": lines}))
    with pytest.raises(CommandError, match="the grid has no site SITE_X"):
        call_command("config", "import", str(file), "--reason", "test")
    assert gdpconfig.value("dispatch", "RUNNING_LIMITS") == {}


def test_before_there_is_a_grid_every_name_may_be_one() -> None:
    configure("RUNNING_LIMITS", SITE_X={"vo": {"demo": 1}})


def test_a_site_that_is_gone_keeps_its_limits_and_one_that_was_removed_is_told() -> None:
    grid("ALPHA")
    beta = Site.objects.create(name="SITE_BETA", state="INACTIVE")
    configure("RUNNING_LIMITS", SITE_BETA={"vo": {"demo": 1}})
    assert check_named(databases=["default"]) == []
    beta.delete()
    assert "SITE_BETA" in gdpconfig.value("dispatch", "RUNNING_LIMITS")
    (warning,) = check_named(databases=["default"])
    assert warning.msg.startswith("dispatch.RUNNING_LIMITS: the grid has no site SITE_BETA")
