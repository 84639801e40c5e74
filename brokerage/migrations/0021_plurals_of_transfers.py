"""What the admin calls several of them; the database stays as it is."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("brokerage", "0020_caches_and_link_loads")]

    operations = [
        migrations.AlterModelOptions("localcopy", {"verbose_name_plural": "local copies"}),
        migrations.AlterModelOptions("transferwish", {"verbose_name_plural": "transfer wishes"}),
    ]
