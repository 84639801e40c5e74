"""A filter that cannot be read is refused with its name, whatever signs are in it."""

from __future__ import annotations

import pytest

from tests.api.people import faults, person


@pytest.mark.django_db
@pytest.mark.parametrize("sent", ["%", "%s", "%(x)s%", "{0}"])
def test_signs_of_formats_are_told_as_they_are(sent: str) -> None:
    told = person("ada", ("demo", "submitter")).get("transfers/", activity=sent)
    assert {field for field, _ in faults(told, 400)} == {"activity"}
    assert sent in told.json()["errors"][0]["message"]
