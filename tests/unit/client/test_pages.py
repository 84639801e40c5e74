"""Lines of the how-to pages that say `broker ...` are lines that it understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from broker_site.client.command.grammar import divided, parsed, parser_of
from broker_site.client.command.main import VERBS

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SAID = re.compile(r"(?:^|\$\(|<\(|\| )broker ([^|)>\n]*)", re.MULTILINE)


def lines() -> list[str]:
    texts = [page.read_text(encoding="utf-8").replace("\\\n", " ") for page in sorted(DOCS.glob("*/*.md"))]
    return [said for text in texts for block in BLOCK.findall(text) for said in SAID.findall(block)]


def test_there_are_such_lines() -> None:
    assert len(lines()) > 20


@pytest.mark.parametrize("line", lines())
def test_a_printed_line_is_understood(line: str) -> None:
    before, behind = divided(shlex.split(re.sub(r"\$\w+", "7", line)))
    options = parsed(parser_of(VERBS), before)
    assert options.verb.aside or not behind
