"""A child gives elements back that stand still there; they rest at the parent, which counts how often in a row."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0040_elements_aside")]

    operations = [
        migrations.AddField(
            model_name="element",
            name="returned_by",
            field=models.ForeignKey(
                "workqueues.ChildBroker", models.PROTECT, null=True, blank=True, db_index=False, related_name="+",
                help_text="the child that gave it back last",
            ),
        ),
        migrations.AddField(
            model_name="element",
            name="n_returned",
            field=models.IntegerField(
                default=0, db_default=0, help_text="how often in a row children gave it back without an end of a file"
            ),
        ),
        migrations.AddField(
            model_name="element",
            name="rests_until",
            field=models.DateTimeField(
                null=True, blank=True, help_text="so long it is kept from children, since it was given back"
            ),
        ),
        migrations.AddIndex(
            model_name="element",
            index=models.Index(
                fields=["rests_until"], name="element_rests",
                condition=models.Q(("rests_until__isnull", False), ("status", "Available")),
            ),
        ),
        migrations.AddField(
            model_name="pulledelement",
            name="given_back",
            field=models.CharField(
                max_length=510, blank=True, default="", db_default="", help_text="why this broker gives it back to the parent"
            ),
        ),
        migrations.AddField(
            model_name="installation",
            name="works_since",
            field=models.DateTimeField(
                db_default=Now(), help_text="since when its agents speak to other brokers without a gap"
            ),
        ),
        migrations.AddField(
            model_name="installation",
            name="worked_at",
            field=models.DateTimeField(db_default=Now(), help_text="when they last did"),
        ),
    ]  # fmt: skip
