"""The number of the transaction that wrote a row, by which readers find what was committed since they last looked."""

from __future__ import annotations

from typing import Any

from django.db import models


class CurrentTransaction(models.Func):
    """The number of this transaction."""

    function = "pg_current_xact_id"
    arity = 0


class TransactionIdField(models.BigIntegerField):
    """A number of 64 bits that PostgreSQL gives each transaction that writes; it does not come round again."""

    description = "transaction id"

    def db_type(self, connection: Any) -> str:
        return "xid8"

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> int | None:
        return None if value is None else int(value)

    def get_prep_value(self, value: Any) -> Any:
        """PostgreSQL has no way from numbers to this type, only from text."""
        return str(value) if isinstance(value, int) else value
