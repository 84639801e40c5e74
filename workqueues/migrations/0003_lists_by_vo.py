"""The lists of a VO's tasks and datasets are read along an index: before, a VO with few leafed through those of all others."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0002_guards")]

    operations = [
        migrations.AddIndex("dataset", models.Index(fields=["vo", "-id"], name="dataset_list_by_vo")),
        migrations.AddIndex("task", models.Index(fields=["vo", "-id"], name="task_list_by_vo")),
    ]
