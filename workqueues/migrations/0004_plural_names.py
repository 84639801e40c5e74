"""What the admin calls several of them; the database stays as it is."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workqueues", "0003_lists_by_vo")]

    operations = [
        migrations.AlterModelOptions(
            "taskparams", {"verbose_name": "task parameters", "verbose_name_plural": "task parameters"}
        )
    ]
