import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0016_rooms_and_status_times'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='idleslot',
            name='asked_at',
        ),
        migrations.AddField(
            model_name='idleslot',
            name='until',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='if it has not asked again by then, it is gone'),
        ),
    ]
