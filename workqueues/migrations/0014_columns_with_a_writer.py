"""Columns of files that nobody wrote go; templates know the largest serial number that their names have room for."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0013_datasets_of_vos")]

    operations = [
        migrations.RemoveField("file", "start_event"),
        migrations.RemoveField("file", "end_event"),
        migrations.AlterField(
            "task",
            "failure_rate",
            models.SmallIntegerField(
                blank=True, help_text="percent of the jobs that failed, at the end", null=True
            ),
        ),
        migrations.RunSQL(
            "UPDATE workqueues_outputtemplate SET max_serial_nr = 2147483647 WHERE max_serial_nr IS NULL", migrations.RunSQL.noop
        ),
    ]
