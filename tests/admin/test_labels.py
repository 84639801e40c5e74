"""What the admin calls things: one of them, several of them."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db.models import Model

OURS = ("broker_site", "gdpconfig", "access", "agency", "workqueues", "brokerage", "monitoring")
UNCOUNTED = ("audit", "software", "measured", "declared slots", "task parameters")
"""What has the same name for one and for several."""


def plural(name: str) -> str:
    """The plural of an English name; its last word counts."""
    if name in UNCOUNTED:
        return name
    if name.endswith("y") and name[-2] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith(("s", "x", "ch", "sh")) else f"{name}s"


MODELS = [model for label in OURS for model in apps.get_app_config(label).get_models()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_several_of_a_model_are_called_by_a_right_plural(model: type[Model]) -> None:
    assert model._meta.verbose_name_plural == plural(str(model._meta.verbose_name))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_columns_have_names_as_people_write_them(model: type[Model]) -> None:
    labels = " ".join(str(column.verbose_name) for column in model._meta.local_fields).split(" ")
    assert not {"vo", "vos", "cpu", "io", "lfn", "gb", "mb", "mbps", "url"} & set(labels)


def test_the_rule_knows_endings() -> None:
    assert plural("job retry history") == "job retry histories"
    assert plural("queue") == "queues"
    assert plural("day") == "days"
    assert plural("process") == "processes"
    assert plural("task parameters") == "task parameters"
