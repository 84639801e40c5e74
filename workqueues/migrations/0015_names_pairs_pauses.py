"""Who writes to each dataset; outputs that a job may leave out, by file; master files beside which others stand; and when a file
is due again after a try that failed. Files of secondary datasets have no limit of tries of their own.
"""

import django.db.models.deletion
from django.db import migrations, models

from workqueues.states import INPUT_FILE, MASTER_TYPES, OUTPUT_TYPES

WRITERS = f"""
INSERT INTO workqueues_datasetwriter (vo, dataset_name, user_name, task_id)
SELECT DISTINCT ON (1, 2) t.vo, d.dataset_name, t.user_name, t.id
FROM workqueues_dataset d JOIN workqueues_task t ON t.id = d.task_id
WHERE d.type IN ({OUTPUT_TYPES.sql}) ORDER BY 1, 2, t.status = 'broken', t.id DESC
"""
OPTIONAL = """
UPDATE workqueues_outputtemplate t SET optional = TRUE FROM workqueues_dataset d
WHERE d.id = t.dataset_id AND 'an' = ANY (string_to_array(d.attributes, ','));
UPDATE workqueues_file f SET optional = TRUE FROM workqueues_dataset d
WHERE d.id = f.dataset_id AND f.out_job_id IS NOT NULL AND 'an' = ANY (string_to_array(d.attributes, ','))
"""
NO_LIMIT = f"""
WITH secondary AS (
    SELECT id FROM workqueues_dataset WHERE master_id IS NOT NULL AND type IN ({MASTER_TYPES.sql})
), again AS (
    UPDATE workqueues_file f SET status = 'ready' FROM secondary s
    WHERE f.dataset_id = s.id AND f.status = 'failed' RETURNING f.dataset_id
)
UPDATE workqueues_dataset d SET n_files_used = d.n_files_used - a.n, n_files_failed = d.n_files_failed - a.n
FROM (SELECT dataset_id, count(*) AS n FROM again GROUP BY dataset_id) a WHERE d.id = a.dataset_id;
UPDATE workqueues_file f SET max_attempt = NULL, max_failure = NULL FROM workqueues_dataset d
WHERE d.id = f.dataset_id AND d.master_id IS NOT NULL AND d.type IN ({MASTER_TYPES.sql})
    AND (f.max_attempt IS NOT NULL OR f.max_failure IS NOT NULL)
"""
UNUSED = sorted(INPUT_FILE.unused)


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0014_columns_with_a_writer")]

    operations = [
        migrations.CreateModel(
            name="DatasetWriter",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("vo", models.CharField(max_length=32)),
                ("dataset_name", models.CharField(max_length=255)),
                ("user_name", models.CharField(max_length=128)),
                (
                    "shared",
                    models.BooleanField(
                        db_default=False, default=False, help_text="other tasks of the owner that say so write to it too"
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        help_text="the task that writes to it, the newest of several",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workqueues.task",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            "datasetwriter", models.UniqueConstraint(fields=["dataset_name", "vo"], name="dataset_writer_once")
        ),
        migrations.AddField(
            "outputtemplate",
            "optional",
            models.BooleanField(db_default=False, default=False, help_text="a job may leave the file out"),
        ),
        migrations.AddField(
            "file",
            "optional",
            models.BooleanField(db_default=False, default=False, help_text="an output that its job may leave out"),
        ),
        migrations.AddField(
            "file",
            "retry_due",
            models.DateTimeField(
                blank=True, help_text="when it may be given to a job again after a try that failed; null: now", null=True
            ),
        ),
        migrations.AddField(
            "file",
            "beside_file",
            models.BigIntegerField(
                blank=True, help_text="master file with which it stands in every job, of a secondary dataset", null=True
            ),
        ),
        migrations.AddField(
            "file",
            "beside_event",
            models.IntegerField(blank=True, help_text="first event of that file in the job, from 0", null=True),
        ),
        migrations.AddIndex(
            "file",
            models.Index(
                condition=models.Q(
                    ("beside_file__isnull", True), ("held", ""), ("retry_due__isnull", True), ("status__in", UNUSED)
                ),
                fields=["dataset", "status", "id"],
                name="file_fresh",
            ),
        ),
        migrations.AddIndex(
            "file",
            models.Index(
                condition=models.Q(("held", ""), ("retry_due__isnull", False), ("status__in", UNUSED)),
                fields=["dataset", "status", "retry_due"],
                name="file_retry_due",
            ),
        ),
        migrations.AddIndex(
            "file",
            models.Index(
                condition=models.Q(("beside_file__isnull", False)), fields=["dataset", "beside_file"], name="file_beside"
            ),
        ),
        migrations.RunSQL(WRITERS, migrations.RunSQL.noop),
        migrations.RunSQL(OPTIONAL, migrations.RunSQL.noop),
        migrations.RunSQL(NO_LIMIT, migrations.RunSQL.noop),
    ]
