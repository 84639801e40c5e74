"""The model of a stored snapshot has a name of its own; its table keeps the old one, so nothing moves."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0006_task_queue_share")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("GridSnapshot", "StoredSnapshot"),
                migrations.AlterModelTable("StoredSnapshot", "brokerage_gridsnapshot"),
            ]
        )
    ]
