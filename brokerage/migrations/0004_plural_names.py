"""What the admin calls several of them; the database stays as it is."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0003_lists_by_vo")]

    operations = [migrations.AlterModelOptions("jobretryhistory", {"verbose_name_plural": "job retry histories"})]
