"""Ends that follow from the files: a retry goes back to any step before the jobs, a waiting input is closed with its task, lost
files stay files of their dataset, and outputs have the files and events that were made.
"""

from django.db import migrations, models

from workqueues.states import INPUT_DATASET, INPUT_TYPES, TASK

RECOUNTED = f"""
UPDATE workqueues_dataset SET n_files = n_files + n_files_missing WHERE type IN {INPUT_TYPES} AND n_files_missing > 0;
UPDATE workqueues_dataset SET n_events = n_events_used, n_files = n_files - n_files_failed,
    n_files_to_be_used = n_files_to_be_used - n_files_failed
WHERE type NOT IN {INPUT_TYPES} AND (n_files_failed > 0 OR n_events_used > 0)
"""
COUNTED_BEFORE = f"""
UPDATE workqueues_dataset SET n_files = n_files - n_files_missing WHERE type IN {INPUT_TYPES} AND n_files_missing > 0;
UPDATE workqueues_dataset SET n_events = NULL, n_files = n_files + n_files_failed,
    n_files_to_be_used = n_files_to_be_used + n_files_failed
WHERE type NOT IN {INPUT_TYPES} AND (n_files_failed > 0 OR n_events_used > 0)
"""


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0010_files_looked_for")]

    operations = [
        migrations.RunSQL(TASK.guard_sql("workqueues_task", "TRUE"), migrations.RunSQL.noop),
        migrations.RunSQL(INPUT_DATASET.guard_sql("workqueues_dataset", f"NEW.type IN {INPUT_TYPES}"), migrations.RunSQL.noop),
        migrations.RunSQL(RECOUNTED, COUNTED_BEFORE),
        migrations.AlterField(
            model_name="dataset",
            name="n_files",
            field=models.IntegerField(
                db_default=0,
                default=0,
                help_text="files in the dataset, lost ones included; of an output those that are made or being made",
            ),
        ),
    ]
