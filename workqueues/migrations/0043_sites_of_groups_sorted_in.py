"""What is new of the sites of groups is sorted in at once: pulls, which look there far more often, had to read all that was not."""

from django.contrib.postgres.indexes import GinIndex
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("workqueues", "0042_inboxes_in_turn"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="elementgroup", name="element_group_sites"),
        migrations.AddIndex(
            model_name="elementgroup",
            index=GinIndex(fields=["sites"], name="element_group_sites", fastupdate=False),
        ),
    ]
