from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0034_rollups'),
    ]

    # Without a mark the agent begins anew, with the jobs as they stand.
    operations = [
        migrations.RunSQL('DELETE FROM brokerage_tallymark', migrations.RunSQL.noop),
        migrations.RemoveField(
            model_name='tallymark',
            name='change_id',
        ),
        migrations.RemoveField(
            model_name='tallymark',
            name='xid',
        ),
        migrations.AddField(
            model_name='tallymark',
            name='seen',
            field=models.TextField(default='', help_text='snapshot of the database; changes that it does not show are yet to be counted'),
            preserve_default=False,
        ),
    ]
