"""Who submitted each task, for himself or for its owner; and one truth of who writes a dataset: its writer, whose planned outputs
are the tasks that do, ended ones too.
"""

import django.db.models.deletion
from django.db import migrations, models

from workqueues.states import OUTPUT_TYPES

SUBMITTED = """
UPDATE workqueues_task t SET submitted_by = substr(c.who, 6) FROM workqueues_taskchange c
WHERE c.task_id = t.id AND c.epoch = 0 AND c.who LIKE 'user:%'
"""
WRITERS = """
INSERT INTO workqueues_datasetwriter (vo, dataset_name, user_name, task_id)
SELECT DISTINCT ON (t.vo, p.dataset_name) t.vo, p.dataset_name, t.user_name, t.id
FROM workqueues_plannedoutput p JOIN workqueues_task t ON t.id = p.task_id
ORDER BY 1, 2, t.status = 'broken', t.id DESC ON CONFLICT (dataset_name, vo) DO NOTHING;
INSERT INTO workqueues_plannedoutput (task_id, dataset_name) SELECT task_id, dataset_name FROM workqueues_datasetwriter
ON CONFLICT (dataset_name, task_id) DO NOTHING;
UPDATE workqueues_plannedoutput p SET writer_id = w.id FROM workqueues_task t, workqueues_datasetwriter w
WHERE t.id = p.task_id AND w.vo = t.vo AND w.dataset_name = p.dataset_name;
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED
"""
"""Constraints are looked at before the table is altered, which PostgreSQL refuses while some are still to be."""
ENDED = f"""
INSERT INTO workqueues_plannedoutput (task_id, writer_id)
SELECT DISTINCT d.task_id, w.id FROM workqueues_dataset d
    JOIN workqueues_task t ON t.id = d.task_id
    JOIN workqueues_datasetwriter w ON w.vo = t.vo AND w.dataset_name = d.dataset_name
WHERE d.type IN ({OUTPUT_TYPES.sql}) ON CONFLICT (writer_id, task_id) DO NOTHING
"""


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0015_names_pairs_pauses")]

    operations = [
        migrations.AddField(
            "task",
            "submitted_by",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="user who submitted it: the owner, or one with the role production for him",
                max_length=128,
            ),
        ),
        migrations.RunSQL(SUBMITTED, migrations.RunSQL.noop),
        migrations.AddField(
            "plannedoutput",
            "writer",
            models.ForeignKey(
                db_index=False,
                help_text="the dataset, and who may write to it",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="planned_outputs",
                to="workqueues.datasetwriter",
            ),
        ),
        migrations.RunSQL(WRITERS, migrations.RunSQL.noop),
        migrations.RemoveConstraint("plannedoutput", "planned_output_once"),
        migrations.RemoveField("plannedoutput", "dataset_name"),
        migrations.RemoveField("datasetwriter", "task"),
        migrations.AlterField(
            "plannedoutput",
            "writer",
            models.ForeignKey(
                db_index=False,
                help_text="the dataset, and who may write to it",
                on_delete=django.db.models.deletion.CASCADE,
                related_name="planned_outputs",
                to="workqueues.datasetwriter",
            ),
        ),
        migrations.AddConstraint(
            "plannedoutput", models.UniqueConstraint(fields=["writer", "task"], name="planned_output_once")
        ),
        migrations.RunSQL(ENDED, migrations.RunSQL.noop),
    ]
