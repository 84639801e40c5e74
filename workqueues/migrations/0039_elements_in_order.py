"""A pull looks at the front of all that waits, and at what its child has yet to confirm."""

from __future__ import annotations

from django.db import migrations, models

BUSY = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_limit = 2000"
RESET = "autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_limit"


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0038_newest_file_notes")]

    operations = [
        migrations.AddIndex(
            model_name="element",
            index=models.Index(
                models.OrderBy(models.F("priority"), descending=True), models.F("task"), models.F("id"),
                name="element_in_order", condition=models.Q(("status", "Available")),
            ),
        ),
        migrations.AddIndex(
            model_name="element",
            index=models.Index(
                fields=["child"], name="element_negotiating", condition=models.Q(("status", "Negotiating"))
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                fields=["id"], name="task_of_children",
                condition=models.Q(("ended_at__isnull", True), models.Q(("work_to", "own"), _negated=True)),
            ),
        ),
        migrations.RunSQL(f"ALTER TABLE workqueues_element SET ({BUSY})", f"ALTER TABLE workqueues_element RESET ({RESET})"),
    ]  # fmt: skip
