"""The language of criteria: which tasks belong to a work queue or a share (seed 001, work queues; decision C2).

`expression` is the tree and what it says of a task, `parse` makes it from a text. A criteria text never becomes SQL or code.
"""

from workqueues.rules.work_queues.criteria.expression import Expression, holds
from workqueues.rules.work_queues.criteria.parse import BadCriteria, parse, read_variables

__all__ = ["BadCriteria", "Expression", "holds", "parse", "read_variables"]
