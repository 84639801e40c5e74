"""Event-level splitting: failures of ranges, where the cycle of a secondary dataset stands, and events that no two jobs have.

A file whose events jobs share may become partial from ready: its last live job ended, and events are left (decision F2).
"""

from django.db import migrations, models

from workqueues.states import INPUT_FILE, INPUT_TYPES

OF_INPUTS = f"NEW.type IN {INPUT_TYPES}"

SPANS = "int8range((file_id << 31) + def_min_event_id, (file_id << 31) + def_max_event_id + 1)"
"""Where the events stand on one line on which every file has 2^31 places: a range type needs no extension of its own."""

NO_OVERLAP = f"""
ALTER TABLE workqueues_eventrange ADD CONSTRAINT event_range_no_overlap EXCLUDE USING gist (({SPANS}) WITH &&)
    WHERE (status IN ('ready', 'sent', 'running', 'finished', 'done', 'merged')
           AND def_min_event_id IS NOT NULL AND def_max_event_id IS NOT NULL)
"""


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0007_units")]

    operations = [
        migrations.AddField(
            model_name="dataset",
            name="next_use",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="files of an untracked secondary dataset that were dealt out to jobs so far",
            ),
        ),
        migrations.AlterField(
            model_name="dataset",
            name="n_events_used",
            field=models.BigIntegerField(blank=True, help_text="events of finished files and of done ranges", null=True),
        ),
        migrations.AddField(
            model_name="eventrange",
            name="failed_attempt",
            field=models.SmallIntegerField(db_default=0, default=0, help_text="tries of its events that failed, up to now"),
        ),
        migrations.AlterField(
            model_name="eventrange",
            name="attempt_nr",
            field=models.SmallIntegerField(db_default=0, default=0, help_text="tries of its events, with this one"),
        ),
        migrations.AlterField(
            model_name="eventrange",
            name="def_min_event_id",
            field=models.IntegerField(help_text="first event of the range, counted from 0 in the file", null=True),
        ),
        migrations.AlterField(
            model_name="eventrange",
            name="def_max_event_id",
            field=models.IntegerField(help_text="last event of the range, itself part of it", null=True),
        ),
        migrations.RunSQL(NO_OVERLAP, "ALTER TABLE workqueues_eventrange DROP CONSTRAINT event_range_no_overlap"),
        migrations.RunSQL(INPUT_FILE.guard_sql("workqueues_file", OF_INPUTS), migrations.RunSQL.noop),
    ]
