"""Jobs have a kind. The default is a constant, so no row is written; the check reads the narrow table once."""

from django.db import migrations, models

KINDS = ("normal", "scout", "build", "preprocess", "merge", "event_service", "es_merge", "jumbo", "cojumbo")


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0008_grid_attributes")]

    operations = [
        migrations.AddField(
            "job", "kind", models.SmallIntegerField(choices=list(enumerate(KINDS)), db_default=0, default=0)
        ),
        migrations.AddConstraint(
            "job", models.CheckConstraint(condition=models.Q(kind__range=(0, 8)), name="job_kind_known")
        ),
    ]
