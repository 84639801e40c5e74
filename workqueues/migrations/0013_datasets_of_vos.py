"""Datasets of the catalogue belong to a VO and an owner, and lie in folders of theirs; chains are known from the submission on.

Datasets that tasks made get the VO and the owner of the first of them; where tasks of several VOs wrote to one, each VO gets a
dataset of this name with the files of its tasks. Imported ones get the VO of this installation if all tasks have the same; else
nobody sees them until `manage.py catalogue give` says whose they are. Files stay where they lie, and new ones of datasets of before
go to the same folders.
"""

import django.db.models.deletion
from django.db import migrations, models

from workqueues.states import OUTPUT_TYPES, TASK

WROTE = f"""
SELECT d.dataset_name AS name, t.vo, t.user_name, d.id, t.creation_date
FROM workqueues_dataset d JOIN workqueues_task t ON t.id = d.task_id WHERE d.type IN ({OUTPUT_TYPES.sql})
"""
FOLDERS = "UPDATE workqueues_cataloguedataset SET folder = replace(trim(BOTH '/' FROM name), '/', '_')"
MADE = f"""
UPDATE workqueues_cataloguedataset c SET vo = w.vo, owner = w.user_name
FROM (SELECT DISTINCT ON (name) * FROM ({WROTE}) AS wrote ORDER BY name, id) AS w
WHERE c.name = w.name AND c.created_at >= w.creation_date
"""
IMPORTED = """
UPDATE workqueues_cataloguedataset SET vo = (SELECT min(vo) FROM workqueues_task)
WHERE vo = '' AND 1 = (SELECT count(DISTINCT vo) FROM workqueues_task)
"""
APART = f"""
INSERT INTO workqueues_cataloguedataset (vo, name, owner, folder, state)
SELECT DISTINCT ON (w.vo, w.name) w.vo, w.name, w.user_name, c.folder, c.state
FROM ({WROTE}) AS w JOIN workqueues_cataloguedataset c ON c.name = w.name AND c.vo <> w.vo
WHERE NOT EXISTS (SELECT 1 FROM workqueues_cataloguedataset o WHERE o.name = w.name AND o.vo = w.vo)
ORDER BY w.vo, w.name, w.id
"""
FILES_APART = """
UPDATE workqueues_cataloguefile f SET dataset_id = own.id
FROM workqueues_cataloguedataset own JOIN workqueues_cataloguedataset other ON other.name = own.name AND other.id < own.id
    JOIN workqueues_dataset d ON d.dataset_name = own.name AND d.vo = own.vo
    JOIN workqueues_file o ON o.dataset_id = d.id AND o.status = 'finished' AND o.out_job_id IS NOT NULL
WHERE f.dataset_id = other.id AND f.lfn = o.lfn AND f.fsize = o.fsize AND f.checksum = o.checksum
"""
PLANNED = f"""
INSERT INTO workqueues_plannedoutput (task_id, dataset_name)
SELECT DISTINCT d.task_id, d.dataset_name FROM workqueues_dataset d JOIN workqueues_task t ON t.id = d.task_id
WHERE d.type IN ({OUTPUT_TYPES.sql}) AND t.status IN ({TASK.live.sql})
"""
HIDDEN = "SELECT count(*) FROM workqueues_cataloguedataset WHERE vo = ''"


def give(apps, schema_editor):
    """Say whose the datasets are, and how many are nobody's."""
    with schema_editor.connection.cursor() as cursor:
        for statement in (FOLDERS, MADE, IMPORTED, APART, FILES_APART):
            cursor.execute(statement)
        cursor.execute(HIDDEN)
        if hidden := cursor.fetchone()[0]:
            print(f"\n    {hidden} imported datasets have no VO, so nobody sees them; see manage.py catalogue give", end="")


def _text(length, help_text, *args):
    return models.CharField(*args, max_length=length, blank=True, default="", db_default="", help_text=help_text)


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0012_many_events")]

    operations = [
        migrations.AddField("cataloguedataset", "vo", _text(32, "whose dataset it is; empty: nobody sees it", "VO")),
        migrations.AddField(
            "cataloguedataset",
            "owner",
            _text(128, "user who may write to it; empty: only who has the role production"),
        ),
        migrations.AddField("cataloguedataset", "folder", _text(300, "where new files go below an endpoint")),
        migrations.AlterField(
            "cataloguedataset",
            "name",
            models.CharField(help_text="name, `scope:name` where it has a scope of its own", max_length=255),
        ),
        migrations.AddConstraint(
            "cataloguedataset", models.UniqueConstraint(fields=["name", "vo"], name="catalogue_dataset_once")
        ),
        migrations.AddIndex("cataloguedataset", models.Index(fields=["vo", "-id"], name="catalogue_list_by_vo")),
        migrations.CreateModel(
            "PlannedOutput",
            [
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("dataset_name", models.CharField(max_length=255)),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="planned_outputs", to="workqueues.task"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=["dataset_name", "task"], name="planned_output_once")],
            },
        ),
        migrations.CreateModel(
            "InputWriter",
            [
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("dataset_name", models.CharField(max_length=255)),
                (
                    "task",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="input_writers",
                        to="workqueues.task",
                    ),
                ),
                (
                    "writer",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="workqueues.task"),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=["task", "dataset_name", "writer"], name="input_writer_once")],
            },
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
        migrations.RunSQL(PLANNED, migrations.RunSQL.noop),
    ]
