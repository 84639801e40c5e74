"""The JSON Schema of our own grid document; `docs/reference/grid.schema.json` is its text.

It says for editors and for other programs what the models enforce, the references between the parts excepted.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from brokerage.rules.grid.document import FORMAT, STORED, GridDocument
from brokerage.rules.grid.measurements import StoredParts


class _WithoutTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        """The names say enough."""
        return False


def schema() -> dict[str, Any]:
    """The schema, draft 2020-12."""
    whole, stored = (m.model_json_schema(schema_generator=_WithoutTitles) for m in (GridDocument, StoredParts))
    whole["$defs"] |= stored["$defs"]
    whole["properties"] |= {part: stored["properties"][part] for part in STORED}
    return {"$schema": GenerateJsonSchema.schema_dialect} | whole | {"title": FORMAT}
