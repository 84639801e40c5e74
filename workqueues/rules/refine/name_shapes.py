"""What names the file-name templates of outputs may give, and whether those of two may be one."""

from __future__ import annotations

import re
from typing import NamedTuple

from workqueues.rules.jobs.job_parameters import NAME_DIGITS, compiled_name
from workqueues.rules.jobs.placeholders import MIDDLE_NAME, TASK_ID


class Shape(NamedTuple):
    """A file-name template with its ways to write the serial number made equal, and what stands before and behind all
    placeholders.
    """

    text: str
    head: str
    tail: str

    def meets(self, other: Shape) -> bool:
        """Whether both may give one name for the same job; a middle name may be anything."""
        if self.text == other.text:
            return True
        if MIDDLE_NAME not in self.text and MIDDLE_NAME not in other.text:
            return False
        heads = self.head.startswith(other.head) or other.head.startswith(self.head)
        return heads and (self.tail.endswith(other.tail) or other.tail.endswith(self.tail))


def shape_of(file_name: str) -> Shape:
    """That of a file-name template."""
    text = re.sub(rf"\$\{{SN(/P|:0{NAME_DIGITS}d)?\}}", "${SN}", file_name)
    return Shape(text, text.partition("${")[0], text.rpartition("}")[2])


def may_meet(one: str, other: str) -> bool:
    """Whether two templates of file names may give one name, whatever the jobs; one without serial number has it at its end."""
    (head, tail), (other_head, other_tail) = _ends(one), _ends(other)
    heads = head.startswith(other_head) or other_head.startswith(head)
    return heads and (tail.endswith(other_tail) or other_tail.endswith(tail))


def _ends(template: str) -> tuple[str, str]:
    """What stands in every name before all placeholders, and behind them."""
    parts = re.split(rf"\$\{{[^}}]*\}}|\${TASK_ID}", template)
    return parts[0], parts[-1] if compiled_name(template).numbered else ""
