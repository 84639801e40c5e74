"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView

from broker_site.foundation.access.guards import open_access

login = open_access(LoginView.as_view(template_name="registration/login.html", redirect_authenticated_user=True))
logout = open_access(LogoutView.as_view(template_name="registration/logged_out.html"))
