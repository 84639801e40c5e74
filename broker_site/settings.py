"""Django's settings, made from one `Env`. Nothing here reads the environment by itself.

The profile `local` serves loopback over plain HTTP; `production` demands TLS in front, and `Env` refuses what is unsafe there.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from broker_site.env import Database, Env

ENV = Env.read(os.environ)
PRODUCTION = ENV.profile == "production"
BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = ENV.debug
SECRET_KEY = ENV.secret_key
SECRET_KEY_FALLBACKS = list(ENV.secret_key_fallbacks)
ALLOWED_HOSTS = list(ENV.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENV.csrf_trusted_origins)

INSTALLED_APPS = [
    "broker_site.roof",
    "broker_site.foundation.gdpconfig",
    "broker_site.foundation.access",
    "broker_site.foundation.agency",
    "workqueues",
    "brokerage",
    "monitoring",
    "broker_site.foundation.access.adminconfig.BrokerAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "django_filters",
    "django_htmx",
    "template_partials",
]

MIDDLEWARE = [
    "broker_site.foundation.access.trace.TraceMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "broker_site.foundation.access.headers.SecurityHeadersMiddleware",
    "broker_site.foundation.access.problems.ProblemsMiddleware",
    "broker_site.foundation.access.authentication.BearerMiddleware",  # before sessions and CSRF: a bearer request has no cookies
    "django.contrib.sessions.middleware.SessionMiddleware",
    "broker_site.foundation.access.sessions.SessionUseMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "broker_site.foundation.access.auditing.AuditMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "broker_site.roof.urls"
WSGI_APPLICATION = "broker_site.wsgi.application"
AUTH_USER_MODEL = "access.User"
AUTHENTICATION_BACKENDS = ["broker_site.foundation.access.backend.PasswordBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "broker_site.formats"

TEMPLATE_LOADERS = ["django.template.loaders.filesystem.Loader", "django.template.loaders.app_directories.Loader"]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [("template_partials.loader.Loader", [("broker_site.foundation.templating.Loader", TEMPLATE_LOADERS)])],
            "builtins": ["broker_site.foundation.templating"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- database -----------------------------------------------------------------------------------------------------------------

NOWHERE = Database(
    name="gridbroker", user="", password="", host="/no-database/set-DATABASE_URL-or-use-manage.py", port="", options={}
)
"""Without DATABASE_URL the first query fails with this path in its message; pure commands never make one."""

GUARDS = {
    "idle_in_transaction_session_timeout": 30_000,
    "statement_timeout": ENV.statement_timeout_ms,
    "lock_timeout": ENV.lock_timeout_ms,
}


PATIENCE = {
    "connect_timeout": 5,
    "tcp_user_timeout": 15_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""How long a process waits for a server whose host is gone; for one that is there but frozen see `roof.web.lane`."""


def _connection(database: Database, guards: dict[str, object], **more: object) -> dict[str, Any]:
    """One entry of DATABASES: persistent connections, checked before use, with the given session settings."""
    return {
        "ENGINE": "broker_site.foundation.sql.postgresql",
        "NAME": database.name,
        "USER": database.user,
        "PASSWORD": database.password,
        "HOST": database.host,
        "PORT": database.port,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            **PATIENCE,
            "application_name": "gridbroker",
            "options": " ".join(f"-c {name}={value}" for name, value in guards.items()),
            **database.options,
        },
        **more,
    }


PLANS = {"plan_cache_mode": "force_generic_plan"}
"""Prepared statements are all alike for every value, and planning one anew for each costs more than running it."""

DATABASES = {
    "default": _connection(ENV.database or NOWHERE, {**GUARDS, **PLANS}),
    "monitoring": _connection(
        ENV.monitoring_database or ENV.database or NOWHERE,
        # One process for a statement: a page has a budget of time, and helpers make it depend on what else the machine does.
        {**GUARDS, "default_transaction_read_only": "on", "statement_timeout": 5_000, "max_parallel_workers_per_gather": 0},
        TEST={"MIRROR": "default"},
    ),
}

MONITORING_DATABASE = "monitoring"
"""The alias through which pages read."""

REDIS_URL = ENV.redis_url or "redis://127.0.0.1:1/0"
"""Without REDIS_URL an address where nobody answers: messages are lost at once, and the agents' periods do their work."""

# Request limits only; what is in here may be lost at any time, and a cache that does not answer must cost a request little.
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "gridbroker",
        "OPTIONS": {"socket_timeout": 0.25, "socket_connect_timeout": 0.25},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# --- web ----------------------------------------------------------------------------------------------------------------------

BODY_SECONDS, UNREAD_SECONDS = ENV.body_timeout_ms / 1000, ENV.unread_timeout_ms / 1000
PEOPLE_THREADS, PILOT_THREADS = ENV.people_threads, ENV.pilot_threads
WEB_CONNECTIONS = ENV.web_connections
WORKER_MEMORY_MB = ENV.worker_memory_mb
LOCAL_PILOTS = ENV.local_pilots
TWO_PERSON = ENV.two_person
BROKER_VERSION = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]
PARENT, PARENT_TOKEN = ENV.parent, ENV.parent_token
INSTALLATION_FILE = ENV.installation_file or f".gridbroker/{ENV.instance}/installation.json"

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles" if PRODUCTION else None  # `manage.py collectstatic` fills it
WHITENOISE_USE_FINDERS = not PRODUCTION
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000  # bytes; reliability rule S19: task parameters are the largest body
DATA_UPLOAD_MAX_NUMBER_FIELDS = 7_000  # fields of a form; a share tree of 500 rows has 12 in each

SECURE_SSL_REDIRECT = PRODUCTION
SECURE_PROXY_SSL_HEADER = ENV.proxy_header
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # probes come from inside, without TLS
SECURE_HSTS_SECONDS = 31_536_000 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = PRODUCTION
SECURE_HSTS_PRELOAD = PRODUCTION
SECURE_REFERRER_POLICY = "same-origin"
SESSION_ENGINE = "broker_site.foundation.access.sessions"
SESSION_COOKIE_SECURE = PRODUCTION
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 8 * 3600
CSRF_COOKIE_SECURE = PRODUCTION
CSRF_FAILURE_VIEW = "broker_site.foundation.access.problems.csrf_failure"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["broker_site.foundation.access.rest.StrictJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["broker_site.foundation.access.rest.Bearer", "broker_site.foundation.access.rest.Session"],
    "DEFAULT_PERMISSION_CLASSES": ["broker_site.foundation.access.rest.ByAction"],
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS tells nothing
    "DEFAULT_THROTTLE_RATES": {"submit": "600/min", "check": "600/min"},
    "EXCEPTION_HANDLER": "broker_site.foundation.access.problems.exception_handler",
    "DEFAULT_FILTER_BACKENDS": ["broker_site.foundation.rest.filtering.StrictBackend"],
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "GridBroker",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "broker_site.foundation.rest.openapi.describe"],
    "ENUM_NAME_OVERRIDES": {
        "TaskStatus": "workqueues.states.TASK.states",
        "DatasetStatus": "workqueues.models.dataset.STATUSES",
        "FileStatus": "workqueues.models.file.STATUSES",
        "JobStatus": "brokerage.states.JOB.states",
        "JobKind": "brokerage.rules.facts.job_kind.KIND_NAMES",
    },
}

# --- logs ---------------------------------------------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "broker_site.foundation.logs.OneLine",
            "format": "{asctime} {levelname} {name} {trace_id} {message}",
            "style": "{",
        }
    },
    "filters": {
        "trace": {"()": "broker_site.foundation.access.trace.TraceFilter"},
        "external_fault": {"()": "broker_site.foundation.logs.ExternalFault"},
    },
    "handlers": {"stderr": {"class": "broker_site.foundation.logs.FaultOnce", "formatter": "line", "filters": ["trace"]}},
    "root": {"handlers": ["stderr"], "level": ENV.log_level},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"filters": ["external_fault"]},
        "broker_site.foundation.access.seals": {"level": "INFO"},  # a worker's log, else from WARNING on, shows each seal
        "celery": {"level": "WARNING"},  # at INFO it tells of every tick
        "kombu": {"level": "WARNING"},
    },
}
