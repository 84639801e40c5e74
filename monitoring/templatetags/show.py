"""How values stand on a page: times, ages, durations, sizes, numbers, states, links to the same list with other parameters."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django import template
from django.conf import settings
from django.template import Context
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from broker_site.foundation.access.trace import trace_id as current_trace_id
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.filter_words import quoted
from brokerage.rules.dispatch.settlement import first_line
from monitoring.charts import files_told, progress_bar, share_bar, state_ribbon, throttle_ribbon
from monitoring.error_words import ERRORS
from monitoring.histograms import draw_histogram
from monitoring.plots import draw, sparkline
from monitoring.tables.form import FilterForm
from monitoring.tables.selection import Selection
from monitoring.views.visitor import appearance_of
from monitoring.wording import RAM_UNITS, UNKNOWN, WORDS
from workqueues.rules.elements.why_waiting import PULL_REASONS

register = template.Library()

NOTHING = "\N{EN DASH}"
THIN = "\N{NARROW NO-BREAK SPACE}"
AGES = ((86400 * 2, 86400, "d"), (3600 * 2, 3600, "h"), (120, 60, "min"), (0, 1, "s"))
PLAIN = 1000
"""From here on the fraction of a number says nothing."""
PARTING = re.compile(r"(?<=[._:/])(?!(?<=[0-9][.:])[0-9])(?=[^._:/\s])")
"""Where a long name may go on in the next line: behind what parts its words, not inside of a number."""
SIZES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


@register.filter
def ram_unit(unit: str) -> str:
    """The unit of a task's memory in words."""
    return RAM_UNITS.get(unit, unit)


@register.filter
def in_form(field: str) -> str:
    """Where a fault of what was typed is, as the form has it: `lines[0].value` is `Line 1, value`."""
    front, _, column = field.partition(".")
    number = front.removeprefix("lines[").removesuffix("]")
    if not (number.isascii() and number.isdigit()):
        return capfirst(field.replace("_", " "))
    return f"Line {int(number) + 1}" + (f", {column}" if column else "")


@register.filter
def parted(name: str) -> SafeString:
    """A name that breaks behind its separators, not inside of its words."""
    *parts, last = PARTING.split(name)
    return format_html_join("", "{}<wbr>", ((part,) for part in parts)) + conditional_escape(last)


@register.filter
def called(name: str, form: FilterForm | None) -> str:
    """A parameter of the address as the form of the page calls it."""
    return form.label_of(name) if form else name


@register.filter
def explained(code: str) -> bool:
    """Whether the glossary has this error."""
    return code in ERRORS


@register.filter
def stamp(at: datetime | None) -> SafeString | str:
    """Date and time, UTC."""
    return NOTHING if at is None else _time(at, f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


@register.filter
def minute(at: datetime | None) -> SafeString | str:
    """Date and time to the minute, UTC."""
    return NOTHING if at is None else _time(at, f"{at.astimezone(UTC):%m-%d %H:%M}")


@register.filter
def plot_name(number: int) -> str:
    """An id for one of several plots."""
    return f"plot-{number}"


@register.filter
def clocked(at: datetime | None) -> SafeString | str:
    """The time of day, UTC, to the second."""
    return NOTHING if at is None else _time(at, f"{at.astimezone(UTC):%H:%M:%S} UTC")


def _time(at: datetime, text: str) -> SafeString:
    return format_html('<time datetime="{}">{}</time>', f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", text)


@register.filter
def age(at: datetime | None) -> SafeString | str:
    """How long ago, with the time itself for who points at it; what lies ahead is `in ...`."""
    if at is None:
        return NOTHING
    seconds = (clock.now() - at).total_seconds()
    return _pointed(at, f"in {lasting(-seconds)}" if seconds < -1 else f"{lasting(max(seconds, 0.0))} ago")


@register.filter
def age_to_a_minute(at: datetime) -> SafeString | str:
    """How long ago something was that is noted at most once a minute: within one it may have been again."""
    return "less than a minute ago" if (clock.now() - at).total_seconds() < 60 else age(at)


@register.filter
def due(at: datetime | None) -> SafeString | str:
    """When something is to happen: `in ...`, and `now` from that time on."""
    if at is None:
        return NOTHING
    seconds = (at - clock.now()).total_seconds()
    return _pointed(at, f"in {lasting(seconds)}" if seconds > 0 else "now")


@register.filter
def next_look(at: datetime) -> SafeString:
    """When an agent looks at a thing again, as the start of a sentence."""
    when = due(at)
    return format_html("Next look due {}" if at <= clock.now() else "Next look {}", when)


def _pointed(at: datetime, text: str) -> SafeString:
    """A text that shows the time itself to who points at it."""
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>', f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc:%Y-%m-%d %H:%M:%S}", text
    )


@register.filter
def lasting(seconds: float | None) -> str:
    """A duration in the largest unit that leaves a number worth reading."""
    if seconds is None:
        return NOTHING
    if 0 < seconds < 0.0995:
        return f"{seconds * 1000:.0f}{THIN}ms"
    if 0 < seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + f"{THIN}s"
    for least, size, unit in AGES:
        if seconds >= least:
            return f"{int(seconds // size):,}{THIN}{unit}"
    return NOTHING


@register.filter
def since(at: datetime) -> float:
    """Seconds since then."""
    return (clock.now() - at).total_seconds()


@register.filter
def away(seconds: float) -> float:
    """A duration whatever its sign."""
    return abs(seconds)


@register.filter
def pull_reason(code: str) -> str:
    """Why a pull got no more, in words."""
    return PULL_REASONS.get(code, code)


@register.filter
def word(text: str) -> str:
    """A text as a filter has it, so that it stands for itself."""
    return quoted(text)


@register.filter
def line_that_tells(error_message: str) -> str:
    """The first line of an error."""
    return first_line(error_message)


@register.filter
def further_lines(error_message: str) -> str:
    """The lines of an error after the first."""
    return error_message.partition("\n")[2]


@register.filter
def size(n: float | None) -> str:
    """Bytes, in powers of 1000."""
    if n is None:
        return NOTHING
    for least, unit in SIZES:
        if n >= least:
            return f"{n / least:.3g}{THIN}{unit}"
    return f"{n:.0f}{THIN}B"


@register.filter
def megabytes(n: float | None) -> str:
    return NOTHING if n is None else size(n * 1e6)


@register.filter
def number(n: float | None) -> str:
    """A number with its thousands parted."""
    if n is None:
        return NOTHING
    if isinstance(n, int):
        return f"{n:,}"
    return f"{n:,.0f}" if abs(n) >= PLAIN else f"{n:.4g}"


WHOLE = re.compile(r"-?[0-9]+\.0")


@register.filter
def setting(text: str | None, unit: str) -> str | None:
    """A value of the configuration with its unit; the fraction of a number of something only where it has one."""
    if not text or not unit:
        return text
    return f"{text.removesuffix('.0') if WHOLE.fullmatch(text) else text}{THIN}{unit}"


@register.filter
def compared(value: Any) -> str:
    """A value that a criterion compared."""
    if value is None or value == "":
        return "nothing"
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else pretty(value)


@register.filter
def pretty(value: Any) -> str:
    """A JSON value for reading; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True, default=str)


@register.simple_tag
@lru_cache(1_024)
def badge(kind: str, state: str) -> SafeString:
    """A state: symbol and word, with a sentence for who points at it."""
    word = WORDS[kind].get(state, UNKNOWN)
    return format_html(
        '<span class="badge {}" title="{}"><span class="symbol" aria-hidden="true">{}</span>{}</span>',
        word.tone, word.help, word.symbol, state,
    )  # fmt: skip


register.simple_tag(progress_bar, name="progress")
register.simple_tag(files_told)
register.simple_tag(share_bar, name="share")
register.simple_tag(draw, name="plot_picture")
register.simple_tag(sparkline)
register.simple_tag(throttle_ribbon, name="ribbon")
register.simple_tag(state_ribbon)
register.simple_tag(draw_histogram, name="histogram_picture")


@register.simple_tag
def address(selection: Selection, **changes: Any) -> str:
    """The query string of the list with some parameters changed; None or "" leaves one out."""
    return selection.address(**{name: value or None for name, value in changes.items()})


@register.simple_tag(takes_context=True)
def appearance(context: Context) -> str:
    """What the visitor chose: light, dark or auto."""
    return appearance_of(context.get("request"))


@register.simple_tag
def banner() -> str:
    """The line that this installation has on every page, if any."""
    return settings.ENV.banner


@register.simple_tag
def trace_id() -> str:
    return current_trace_id() or NOTHING
