from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0039_counts_by_queue_share_and_day'),
    ]

    # Jobs are made and end meanwhile.
    atomic = False

    operations = [
        AddIndexConcurrently(
            model_name='jobinput',
            index=models.Index(condition=models.Q(('status', 'used'), models.Q(('tracked', False), ('event_range_id__isnull', False), _connector='OR')), fields=['file_id'], name='job_input_used_shared'),
        ),
    ]
