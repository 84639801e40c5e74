from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# What is left of one that was not finished: it serves nobody, and the name is taken.
FORGET_BROKEN = 'DROP INDEX CONCURRENTLY IF EXISTS file_change_of_task'


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0037_elements'),
    ]

    # Files are noted meanwhile.
    atomic = False

    operations = [
        migrations.RunSQL(FORGET_BROKEN, migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='filechange',
            index=models.Index(fields=['task_id', '-id'], name='file_change_of_task'),
        ),
        migrations.AlterField(
            model_name='filechange',
            name='task_id',
            field=models.BigIntegerField(),
        ),
    ]
