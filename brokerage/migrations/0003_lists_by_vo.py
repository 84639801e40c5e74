"""The list of a VO's jobs is read along an index: before, a VO with few jobs leafed through those of all others."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0002_guards")]

    operations = [
        migrations.AddIndex("jobspec", models.Index(fields=["vo", "-job"], name="job_spec_list_by_vo")),
    ]
