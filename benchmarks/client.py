"""What a client process has loaded before it begins; the crew loads it once and forks its clients from there."""

import gc

import django

django.setup()

import benchmarks.__main__  # noqa: E402, F401
import broker_site.roof.urls  # noqa: E402, F401

gc.collect()
gc.freeze()  # as the web server does before its first request
