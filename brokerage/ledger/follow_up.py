"""What follows from the end of jobs once that is committed, since who works on a task locks it before its datasets."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from django.db import transaction

P = ParamSpec("P")


def follow_up(do: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """Do this after the commit. Where it fails (its task is locked for long), that is logged: the jobs have ended all the same,
    and whoever is to be told of that is.
    """

    @wraps(do)  # Django tells the name of what failed
    def done() -> None:
        do(*args, **kwargs)

    transaction.on_commit(done, robust=True)
