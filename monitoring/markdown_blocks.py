"""Descriptions in Markdown as plain blocks that a template shows: nothing of a text becomes a tag.

Pure. Marks inside a line (code, emphasis, links) are left out; their text stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


class Block(NamedTuple):
    """`kind`: text, heading, list, code or table. `lines`: its text, items or code; `rows`: of a table, the head first."""

    kind: str
    lines: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    @property
    def head(self) -> Sequence[str]:
        return self.rows[0] if self.rows else ()

    @property
    def body(self) -> Sequence[Sequence[str]]:
        return self.rows[1:]


def blocks(text: str) -> list[Block]:
    """The paragraphs, headings, lists, codes and tables of a text, in order; what lies in a list is one item of it."""
    return list(_blocks(_MARKDOWN.parse(text)))


def _blocks(tokens: Sequence[Token]) -> Iterator[Block]:
    outermost = ""
    inside: list[Token] = []
    for token in tokens:
        if not outermost and token.nesting == 1:
            outermost, inside = token.type.removesuffix("_open"), []
        elif outermost and token.type == f"{outermost}_close" and token.level == 0:
            yield _block(outermost, inside)
            outermost = ""
        elif outermost:
            inside.append(token)
        elif token.type in ("fence", "code_block"):
            yield Block("code", [token.content.rstrip("\n")])


def _block(kind: str, inside: Sequence[Token]) -> Block:
    if kind == "table":
        return Block("table", rows=_rows(inside))
    lines = [_plain(token) for token in inside if token.type == "inline"]
    return Block({"heading": "heading", "bullet_list": "list", "ordered_list": "list"}.get(kind, "text"), lines)


def _rows(inside: Sequence[Token]) -> list[list[str]]:
    numbers, number = [], 0
    for token in inside:
        number += token.type == "tr_open"
        if token.type == "inline":
            numbers.append((number, _plain(token)))
    return [[text for _, text in row] for _, row in groupby(numbers, key=lambda pair: pair[0])]


def _plain(line: Token) -> str:
    """The text of a line without its marks; a break is a space."""
    return "".join(" " if part.type == "softbreak" else part.content for part in line.children or ())
