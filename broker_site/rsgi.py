"""The application that granian serves: our adapter in front of Django's handler (`roof.web`)."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_site.settings")

handler = get_wsgi_application()

from broker_site.roof.web.application import Application  # noqa: E402 - its settings have to be there first

application = Application(handler)
