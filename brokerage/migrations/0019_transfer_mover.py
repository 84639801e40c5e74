"""What the mover keeps of copies and links."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0018_transfers'),
        ('workqueues', '0021_replicas_and_throttles'),
    ]

    operations = [
        migrations.AddField(
            model_name='transferlink',
            name='counted_since',
            field=models.DateTimeField(blank=True, help_text='since when its attempts are counted', null=True),
        ),
        migrations.AddField(
            model_name='transferlink',
            name='halved_until',
            field=models.DateTimeField(blank=True, help_text='half as many transfers at a time until then, since many failed', null=True),
        ),
        migrations.AddField(
            model_name='transferlink',
            name='n_done',
            field=models.IntegerField(db_default=0, default=0, help_text='attempts that ended well since then'),
        ),
        migrations.AddField(
            model_name='transferlink',
            name='n_failed',
            field=models.IntegerField(db_default=0, default=0, help_text="attempts that failed since then, by the link's fault"),
        ),
        migrations.AddField(
            model_name='transferwish',
            name='released',
            field=models.BooleanField(db_default=False, default=False, help_text='given up, and whether somebody else wants the file was not looked at yet'),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='claimed_until',
            field=models.DateTimeField(blank=True, help_text='when the claim of who submits it ends; once it is submitted, when its backend is asked', null=True),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('status__in', ['submitting', 'submitted'])), fields=['claimed_until'], name='transfer_claimed'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('status', 'queued')), fields=['tape', 'created_at'], name='transfer_queued_since'),
        ),
        migrations.AddIndex(
            model_name='transferwish',
            index=models.Index(condition=models.Q(('released', True)), fields=['id'], name='transfer_wish_released'),
        ),
    ]
