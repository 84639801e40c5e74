from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0042_bulk_counts_and_stop'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='pilot',
            index=models.Index(fields=['registered_at', 'id'], name='pilot_by_time'),
        ),
    ]
