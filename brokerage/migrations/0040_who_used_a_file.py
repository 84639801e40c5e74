from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# What is left of one that was not finished: it serves nobody, and the name is taken.
FORGET_BROKEN = 'DROP INDEX CONCURRENTLY IF EXISTS job_input_used_shared'


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0039_counts_by_queue_share_and_day'),
    ]

    # Jobs are made and end meanwhile.
    atomic = False

    operations = [
        migrations.RunSQL(FORGET_BROKEN, migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='jobinput',
            index=models.Index(condition=models.Q(('status', 'used'), models.Q(('tracked', False), ('event_range_id__isnull', False), _connector='OR')), fields=['file_id'], name='job_input_used_shared'),
        ),
    ]
