"""An enrolment secret names one or several queues, and says whose work its pilots do. Those of before stay good as they are."""

import django.contrib.postgres.fields
from django.db import migrations, models

TO_SEVERAL = "UPDATE access_credential SET queues = ARRAY[queue] WHERE queue <> ''"
TO_ONE = "UPDATE access_credential SET queue = coalesce(queues[1], '')"


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0004_audit_seals'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='credential',
            name='access_credential_enrolment_has_queue',
        ),
        migrations.AddField(
            model_name='credential',
            name='owner',
            field=models.CharField(blank=True, db_default='', help_text='Whose work private pilots do: a user name.', max_length=150),
        ),
        migrations.AddField(
            model_name='credential',
            name='owner_group',
            field=models.CharField(blank=True, db_default='', help_text='The working group in which private pilots do it, and where that shares its jobs all its work; empty: in any.', max_length=64),
        ),
        migrations.AddField(
            model_name='credential',
            name='pilot_kind',
            field=models.CharField(choices=[('generic', 'Generic'), ('private', 'Private')], db_default='generic', default='generic', help_text='Of an enrolment secret: generic pilots do the work of everybody in the VO, private ones that of an owner.', max_length=8),
        ),
        migrations.AddField(
            model_name='credential',
            name='queues',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=128), blank=True, db_default=[], default=list, help_text='The computing queues, of one site, whose pilots enrol with it, separated by commas; of a pilot its own.', size=None),
        ),
        migrations.RunSQL(TO_SEVERAL, TO_ONE),
        migrations.RemoveField(
            model_name='credential',
            name='queue',
        ),
        migrations.AddConstraint(
            model_name='credential',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'enrolment'), _negated=True), models.Q(('queues', []), _negated=True), _connector='OR'), name='access_credential_enrolment_has_queue'),
        ),
        migrations.AddConstraint(
            model_name='credential',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'pilot'), _negated=True), ('queues__len', 1), _connector='OR'), name='access_credential_pilot_has_one_queue'),
        ),
        migrations.AddConstraint(
            model_name='credential',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('owner', ''), ('owner_group', ''), ('pilot_kind', 'generic')), models.Q(('pilot_kind', 'private'), models.Q(('owner', ''), _negated=True)), _connector='OR'), name='access_credential_owner_of_private', violation_error_message='Private pilots have an owner, generic ones neither owner nor group.'),
        ),
    ]
