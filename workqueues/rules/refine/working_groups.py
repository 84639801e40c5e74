"""Who may submit for a working group: a task of a group counts for it, and not for its user, so that who names one gets its slots
and its priority. Pure.

Source: facts on users 7 (a working group is that of the credential). Credentials say nothing of groups here, so an operator
writes down who is in one. Not here: the role production, which goes beyond this (`api.submission`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem


def group_wishes(group: str, owner: str, members: Mapping[str, Collection[str]]) -> Iterator[Problem]:
    """What needs the role production: a group that the owner is not in. Nothing while nobody is written down (`members`: the
    users of each group); the message is the beginning of a sentence.
    """
    if group and members and owner not in members.get(group, ()):
        yield problem("workingGroup", "production", f"the working group {group[:40]!r}, which {owner} is not in,")


def bad_members(value: object) -> str | None:
    """What is wrong with the members of groups as somebody writes them; None where nothing is."""
    good = isinstance(value, Mapping) and all(
        isinstance(users, list | tuple) and all(isinstance(user, str) and user for user in users) for users in value.values()
    )
    return None if good else 'an object of lists is expected, as in {"HIGG": ["ada", "bob"]}'
