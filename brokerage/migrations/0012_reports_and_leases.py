"""Reports of pilots: times that every reader can hold, and what was left out of them. Leases: a place each, and when the job token
that counts was issued. All columns are empty or constant, so no row is written but results with times that nobody can read.
"""

from datetime import UTC, datetime

from django.db import migrations, models
from django.db.models import Q

READABLE = (datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC))
UNREADABLE = "{0} NOT BETWEEN '1970-01-01 00:00:00+00' AND '9000-01-01 00:00:00+00'"
FORGET = "; ".join(
    f"UPDATE brokerage_jobresult SET {column} = NULL WHERE {UNREADABLE.format(column)}" for column in ("start_time", "end_time")
)


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0011_ends_of_logs")]

    operations = [
        migrations.AddField(
            "jobresult",
            "notes",
            models.CharField(
                db_default="",
                default="",
                help_text="what of the pilot's report could not be used, a line each",
                max_length=1000,
            ),
        ),
        migrations.RunSQL(FORGET, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "jobresult",
            models.CheckConstraint(
                name="job_result_times_readable",
                condition=(Q(start_time__isnull=True) | Q(start_time__range=READABLE))
                & (Q(end_time__isnull=True) | Q(end_time__range=READABLE)),
            ),
        ),
        migrations.AddField(
            "job",
            "lease_slot",
            models.IntegerField(blank=True, help_text="place of the lease among those of its pilot", null=True),
        ),
        migrations.AddField(
            "job",
            "token_since",
            models.DateTimeField(blank=True, help_text="when the job token that counts was issued", null=True),
        ),
        migrations.RemoveConstraint("job", "job_leased"),
        migrations.AddConstraint(
            "job",
            models.UniqueConstraint(
                condition=Q(lease_holder__isnull=False), fields=["lease_holder", "lease_slot"], name="job_lease_place"
            ),
        ),
    ]
