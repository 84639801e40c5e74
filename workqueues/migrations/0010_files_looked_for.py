"""When an input is looked for on storage again, and since when it is not found there; broken ones may be found again too."""

from django.db import migrations, models

from workqueues.states import GUARDED, INPUT_FILE


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0009_boundaries_concrete_datasets")]

    operations = [
        migrations.AddField(
            "file",
            "held_storage",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="storage endpoint whose return a held file waits for",
                max_length=60,
            ),
        ),
        migrations.AddField(
            "file",
            "absent_since",
            models.DateTimeField(
                blank=True, help_text="when it was first found absent or damaged on a storage that answers", null=True
            ),
        ),
        migrations.AddField(
            "file",
            "look_due",
            models.DateTimeField(
                blank=True, help_text="when it is looked for on storage next; null: not at all", null=True
            ),
        ),
        migrations.AddIndex(
            "file",
            models.Index(
                condition=models.Q(("look_due__isnull", False)), fields=["task", "look_due"], name="file_looked_for"
            ),
        ),
        migrations.RunSQL("UPDATE workqueues_file SET look_due = now() WHERE held <> ''", migrations.RunSQL.noop),
        *(
            migrations.RunSQL(machine.guard_sql(table, only), migrations.RunSQL.noop)
            for machine, table, only in GUARDED
            if machine is INPUT_FILE
        ),
    ]
