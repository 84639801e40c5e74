"""The ASGI application, for servers that want one; ours is served as WSGI."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_site.settings")

application = get_asgi_application()
