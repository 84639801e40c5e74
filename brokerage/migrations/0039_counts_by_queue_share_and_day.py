from django.db import migrations, models

# Nobody counts meanwhile: what is there is summed up as it stands.
HOLD = "SELECT FROM brokerage_tallymark FOR UPDATE"
GROUPS = """
INSERT INTO brokerage_tallygroup (family, {columns}) SELECT DISTINCT '{family}', {columns}
FROM brokerage_tallygroup WHERE family = 'place'
"""
LEVELS = """
INSERT INTO brokerage_tallylevel (group_id, what, n) SELECT s.id, l.what, sum(l.n)
FROM brokerage_tallylevel l JOIN brokerage_tallygroup p ON p.id = l.group_id AND p.family = 'place'
    JOIN brokerage_tallygroup s USING ({columns})
WHERE s.family = '{family}' GROUP BY 1, 2 HAVING sum(l.n) <> 0
"""
BUCKETS = """
INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n) SELECT b.step_s, s.id, b.what, b.at, sum(b.n)
FROM brokerage_tallybucket b JOIN brokerage_tallygroup p ON p.id = b.group_id AND p.family = 'place'
    JOIN brokerage_tallygroup s USING ({columns})
WHERE s.family = '{family}' GROUP BY 1, 2, 3, 4 HAVING sum(b.n) <> 0 ORDER BY 4, 2, 3
"""
FAMILIES = (('queue', 'vo, queue'), ('share', 'vo, share, kind'))
DAYS = """
INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
SELECT 86400, group_id, what, date_bin('1 day', at, '2000-01-01 00:00+00'), sum(n) FROM brokerage_tallybucket WHERE step_s = 3600
GROUP BY 2, 3, 4 HAVING sum(n) <> 0 ORDER BY 4, 2, 3
"""
FORGET = """
DELETE FROM brokerage_tallybucket b USING brokerage_tallygroup g
WHERE g.id = b.group_id AND (g.family IN ('queue', 'share') OR b.step_s = 86400);
DELETE FROM brokerage_tallylevel l USING brokerage_tallygroup g WHERE g.id = l.group_id AND g.family IN ('queue', 'share');
DELETE FROM brokerage_tallygroup WHERE family IN ('queue', 'share')
"""


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage', '0038_job_samples'),
    ]

    operations = [
        migrations.AlterField(
            model_name='tallybucket',
            name='step_s',
            field=models.IntegerField(choices=[(60, '60'), (300, '300'), (3600, '3600'), (86400, '86400')], help_text='length of the time, s'),
        ),
        migrations.AlterField(
            model_name='tallygroup',
            name='family',
            field=models.CharField(choices=[('vo', 'vo'), ('queue', 'queue'), ('share', 'share'), ('place', 'place'), ('user', 'user'), ('error', 'error')], max_length=8),
        ),
        migrations.RunSQL(
            [
                HOLD,
                *(s.format(family=family, columns=columns) for s in (GROUPS, LEVELS, BUCKETS) for family, columns in FAMILIES),
                DAYS,
            ],
            FORGET,
        ),
    ]
