"""Django's handler without our adapter: what the web server's answers are compared with, and the reference of benchmarks."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_site.settings")

application = get_wsgi_application()
