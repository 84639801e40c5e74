"""Django's entry to the admin, with our site in place of its own."""

from django.contrib.admin.apps import AdminConfig


class BrokerAdminConfig(AdminConfig):
    default_site = "broker_site.foundation.access.adminsite.BrokerAdminSite"
