"""Every task parameter that PanDA knows, as one typed table, with what of it works today.

Source: facts on task parameters 2.1 and the decisions (D10, D11, F3). A name outside this table is refused with the nearest
known one; a known one whose row is not built yet is refused with that row (decision F4), so that no wish is silently ignored.
The list of the latter shrinks with each issue; `not_yet` gives it for the API's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from workqueues.rules.task_parameters import endings, events, identity, inputs, resources
from workqueues.rules.task_parameters.parameter import Kind, Parameter, Reading, found, problem, read

__all__ = ["TASK_PARAMETERS", "Kind", "Parameter", "Reading", "find", "found", "not_yet", "problem", "read"]

_ALL = (*identity.PARAMETERS, *inputs.PARAMETERS, *resources.PARAMETERS, *endings.PARAMETERS, *events.PARAMETERS)

TASK_PARAMETERS: Mapping[str, Parameter] = MappingProxyType({p.name: p for p in _ALL})
"""All known parameters by name, in the order of the facts' table."""

_EXTRA_DATASETS = Parameter("dsForXXX", "text", "Comma list of further datasets for the stream XXX, at resubmission.", row="J23")


def find(name: str) -> Parameter | None:
    """The parameter called `name`; `dsFor` with any stream behind it is one."""
    if (known := TASK_PARAMETERS.get(name)) is not None:
        return known
    return _EXTRA_DATASETS if re.fullmatch(r"dsFor\w{1,20}", name) else None


def not_yet() -> Mapping[str, str]:
    """Name to row for what a task cannot use yet."""
    return {p.name: p.row for p in _ALL if not p.supported}
