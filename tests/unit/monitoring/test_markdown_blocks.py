"""Descriptions in Markdown are shown as blocks; what looks like a tag in them stays text."""

from __future__ import annotations

from monitoring.markdown_blocks import Block, blocks


def test_paragraphs_headings_lists_codes_and_tables_are_told_apart() -> None:
    table = "| name | *kind* |\n|---|---|\n| a | text |"
    text = f"One `line`,\nand more.\n\n### Fields\n\n{table}\n\n- first\n- second\n\n```\ncode\n```\n"
    assert blocks(text) == [
        Block("text", ["One line, and more."]),
        Block("heading", ["Fields"]),
        Block("table", rows=[["name", "kind"], ["a", "text"]]),
        Block("list", ["first", "second"]),
        Block("code", ["code"]),
    ]


def test_tags_stay_text() -> None:
    assert blocks("a <b>bold</b> <script>x</script>") == [Block("text", ["a <b>bold</b> <script>x</script>"])]
