"""What the tests of pages read from answers."""

from __future__ import annotations

import re
from typing import Any

from django.http import StreamingHttpResponse
from django.test.utils import CaptureQueriesContext

MOST_STATEMENTS = 20
"""Statements that a page may need, whatever its rows."""


def counted(statements: CaptureQueriesContext) -> int:
    """The statements but the look for a new revision of the configuration, which depends on the time alone."""
    return sum("gdpconfig_" not in query["sql"] for query in statements.captured_queries)


def text(answer: Any) -> str:
    """The body, also of an answer that is sent while it is read; without the places where names may break, which nobody sees."""
    streamed = isinstance(answer, StreamingHttpResponse)
    body: bytes = b"".join(answer.streaming_content) if streamed else answer.content
    return body.decode().replace("<wbr>", "")


def shown(answer: Any, name: str) -> list[int]:
    """The ids in the rows of a page, in order."""
    return [int(i) for i in re.findall(rf'<th scope="row" class="num"><a href="/{name}/(\d+)/">', text(answer))]
