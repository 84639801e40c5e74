from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workqueues', '0025_often_tried_files'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='file',
            index=models.Index(condition=models.Q(('status', 'prepared')), fields=['task'], name='file_to_merge'),
        ),
    ]
