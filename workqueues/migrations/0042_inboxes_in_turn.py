"""Inboxes are counted in turn, those that were not for longest first; every task with elements has one from now on."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0041_elements_given_back'),
    ]

    operations = [
        migrations.AddField(
            model_name='elementinbox',
            name='counted_at',
            field=models.DateTimeField(blank=True, help_text='when they were counted last; null: not since some were cut', null=True),
        ),
        migrations.AddField(
            model_name='elementinbox',
            name='is_open',
            field=models.BooleanField(db_default=True, default=True, help_text='not all of its elements have ended'),
        ),
        migrations.AddIndex(
            model_name='elementinbox',
            index=models.Index(models.OrderBy(models.F('counted_at'), nulls_first=True), models.F('task'), condition=models.Q(('is_open', True)), name='inbox_counted'),
        ),
        migrations.RunSQL(
            """
            INSERT INTO workqueues_elementinbox (task_id, status, counts)
            SELECT DISTINCT task_id, 'Available', '{}'::jsonb FROM workqueues_element ON CONFLICT DO NOTHING
            """,
            migrations.RunSQL.noop,
        ),
    ]
