"""Pages are rendered as Django renders them, by a shorter way."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.template import Context, Engine, engines
from django.test import override_settings
from django.urls import NoReverseMatch, set_script_prefix
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe

from broker_site.foundation.templating import Link, Loader, Value

DJANGO = Engine()
OURS = engines["django"].engine  # type: ignore[attr-defined]
VALUES = {
    "text": "<a href='x'>\"&amp;", "safe": mark_safe("<b>bold</b>"), "empty": "", "nothing": None, "yes": True, "n": 1234567,
    "less": -5, "part": 0.1 + 0.2, "exact": Decimal("1234.50"), "at": datetime(2026, 11, 27, 8, 9, 10, tzinfo=UTC),
    "lazy": lazystr("a<b"), "many": ["<", 1], "named": {"in": "<i>"}, "call": lambda: "<called>", "name": "S&_Q'0ü %",
    "number": "12",
}  # fmt: skip


def both(source: str, **more: Any) -> tuple[str, str]:
    """What Django and we make of a template."""
    ours = OURS.from_string(source)
    for node in ours.nodelist.get_nodes_by_type(OURS.from_string("{{ x }}").nodelist[0].__class__):
        node.__class__ = Value
    return tuple(template.render(Context({**VALUES, **more})) for template in (DJANGO.from_string(source), ours))  # type: ignore[return-value]


@pytest.mark.parametrize(
    "name", [*VALUES, "named.in", "missing", "text.missing", "many.0", "text|upper", "n|add:1", "safe|lower"]
)
@pytest.mark.parametrize("around", ["{value}", "{{% autoescape off %}}{value}{{% endautoescape %}}"])
def test_values_stand_as_django_has_them(name: str, around: str) -> None:
    theirs, ours = both(around.format(value="{{ " + name + " }}"))
    assert ours == theirs
    with override_settings(USE_THOUSAND_SEPARATOR=True):
        theirs, ours = both(around.format(value="{{ " + name + " }}"))
        assert ours == theirs


LINKS = (
    "'page-home'", "'page-task' n", "'page-job' 0", "'page-queue' name", "'page-queue' text", "'page-queue' number",
    "'page-user' name", "'page-queue' n", "'page-link' 'a' 'b c'", "'page-task' task_id=n", "'admin:index'",
    "'page-job-output' 1 2", "'page-config-key' 'a.b'", "'page-task' n as kept", "'page-task' less as kept",
    "'page-queue' name as kept",
)  # fmt: skip


@pytest.mark.parametrize("link", LINKS)
def test_links_lead_where_djangos_lead(link: str) -> None:
    source = f"{{% url {link} %}}|{{{{ kept }}}}"
    theirs, ours = both(source)
    assert ours == theirs
    assert both(source) == (theirs, ours)
    set_script_prefix("/grid/")
    try:
        theirs, ours = both(source)
        assert ours == theirs and (theirs.startswith("/grid/") or " as " in link)
    finally:
        set_script_prefix("/")


@pytest.mark.parametrize("link", ["'page-nowhere'", "'page-task' less", "'page-task' text", "'page-home' 1", "'page-task' yes"])
def test_a_link_that_leads_nowhere_is_refused_in_the_same_words(link: str) -> None:
    told = []
    for engine in (DJANGO, OURS):
        with pytest.raises(NoReverseMatch) as refused:
            engine.from_string(f"{{% url {link} %}}").render(Context(VALUES))
        told.append(str(refused.value))
    assert told[0] == told[1]


def test_the_pages_go_the_shorter_way() -> None:
    template = OURS.get_template("monitoring/parts/job_table.html")
    kinds = {type(node).__name__: type(node) for node in template.nodelist.get_nodes_by_type((Value, Link))}
    assert set(kinds.values()) == {Value, Link}
    assert any(isinstance(loader, Loader) for loader in OURS.template_loaders[0].loaders)
