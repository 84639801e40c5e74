"""Names with wildcards: `*` stands for any text, `?` for one character; everything else, `%` and `_` too, for itself."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField, Q, TextField
from django.db.models.lookups import Lookup

_LIKE = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_", "*": "%", "?": "_"})


@CharField.register_lookup
@TextField.register_lookup
class _Like(Lookup):
    """SQL's LIKE, which the ORM does not offer by itself. As a lookup, what is not like a text may also be null."""

    lookup_name = "like"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        left, left_params = self.process_lhs(compiler, connection)
        right, right_params = self.process_rhs(compiler, connection)
        return f"{left} LIKE {right}", (*left_params, *right_params)


def named(field: str, pattern: str) -> Q:
    """The condition that `field` matches; without a wildcard it is equality, which an index serves."""
    if "*" not in pattern and "?" not in pattern:
        return Q(**{field: pattern})
    return Q(**{f"{field}__like": pattern.translate(_LIKE)})
