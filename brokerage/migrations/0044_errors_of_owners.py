from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0043_pilot_by_time'),
    ]

    operations = [
        migrations.AlterField(
            model_name='tallygroup',
            name='family',
            field=models.CharField(choices=[('vo', 'vo'), ('queue', 'queue'), ('share', 'share'), ('place', 'place'), ('user', 'user'), ('error', 'error'), ('error_at', 'error_at'), ('error_of', 'error_of')], max_length=8),
        ),
    ]
