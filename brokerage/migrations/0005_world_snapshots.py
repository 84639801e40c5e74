"""Snapshots become the world of a cycle, its grid stored once; decisions keep what they knew beyond it.

Snapshots of the form before are let go: of older decisions remains what their records say.
"""

import django.db.models.deletion
from django.db import migrations, models

LET_GO = """
SET CONSTRAINTS ALL IMMEDIATE;
UPDATE brokerage_decision SET snapshot_id = NULL WHERE snapshot_id IS NOT NULL;
DELETE FROM brokerage_gridsnapshot;
"""


def _part(help_text):
    return models.ForeignKey(
        default="", on_delete=django.db.models.deletion.PROTECT, related_name="+", to="brokerage.gridpart", help_text=help_text
    )


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0004_plural_names"), ("brokerage", "0003_grid_facts_overrides_feeds")]

    operations = [
        migrations.RunSQL(LET_GO, migrations.RunSQL.noop),
        migrations.CreateModel(
            "GridPart",
            [
                (
                    "digest",
                    models.CharField(
                        max_length=64, primary_key=True, serialize=False, help_text="sha256 of the part before it is compressed"
                    ),
                ),
                ("content", models.BinaryField(help_text="compressed; brokerage.rules.world.stored_snapshot reads it")),
            ],
        ),
        migrations.RemoveField("gridsnapshot", "columns"),
        migrations.RemoveField("gridsnapshot", "digest"),
        migrations.AddField("gridsnapshot", "grid", _part("sites, storages, queues and software"), preserve_default=False),
        migrations.AddField("gridsnapshot", "links", _part("links between sites"), preserve_default=False),
        migrations.AddField(
            "gridsnapshot",
            "moment",
            models.BinaryField(default=b"", help_text="jobs, pilots and what else changes from cycle to cycle, compressed"),
            preserve_default=False,
        ),
        migrations.AddField(
            "decision",
            "own",
            models.BinaryField(
                default=b"", help_text="what it knew beyond the snapshot, compressed; brokerage.rules.world.stored_snapshot reads it"
            ),
        ),
        migrations.AddField(
            "decision",
            "sameness",
            models.CharField(
                max_length=64,
                default="",
                db_default="",
                help_text="digest of policy, candidates, first criteria and outcome",
            ),
        ),
        migrations.AddField(
            "decision",
            "pinned",
            models.BooleanField(default=False, db_default=False, help_text="its snapshot is kept until somebody unpins it"),
        ),
        migrations.AddIndex(
            "decision", models.Index(fields=["snapshot"], name="decision_pinned", condition=models.Q(pinned=True))
        ),
        migrations.AddIndex(
            "job",
            models.Index(fields=["task_id", "ended_at"], name="job_ended_lately", condition=models.Q(ended_at__isnull=False)),
        ),
    ]
