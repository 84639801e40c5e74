# GridBroker. Needs Python 3.11 or 3.12 and a network that reaches a Python package registry; everything else is built here.
.DEFAULT_GOAL := help
.PHONY: help demo up client test soak lint bench lock clean
SHELL := /bin/sh
# A run starts dozens of Python processes, and each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

# Python 3.11 or 3.12 if one is there (a private Redis comes with them as a wheel), else python3 as it is.
PYTHON ?= $(shell for p in python3 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && { echo "$$p"; exit; }; done; echo python3)
PY := .venv/bin/python
ENV := .venv/.stamp
PYTEST_ARGS ?= -n 2 --dist worksteal
# SITES_APART=1: `up` and `demo` with a storage server for each site and nothing shared but HTTP.
# DEMO=1: `up` as an instance of its own, with tasks that show what there is to see.
TOUR := $(if $(filter-out 0,$(DEMO)),--demo)
APART := $(if $(filter-out 0,$(SITES_APART)),--sites-apart)

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' Makefile

$(ENV): requirements.lock
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
		sys.exit(None if v >= (3, 11) else "GridBroker needs Python 3.11 or newer; $(PYTHON) is %d.%d. Set PYTHON=..." % v[:2])'
	@echo "building .venv with $$($(PYTHON) --version) ..."
	@rm -rf .venv
	@$(PYTHON) -m venv .venv || { echo "cannot make a virtual environment; on Debian: apt-get install python3-venv"; rm -rf .venv; exit 1; }
	@PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore $(PY) -m pip install --quiet --require-hashes --only-binary :all: -r requirements.lock
	@touch $@

demo: $(ENV) ## run a real campaign through a private system and check its files
	@$(PY) manage.py demo $(APART)

up: $(ENV) ## the same system, kept running; Ctrl-C stops it, data is kept; DEMO=1: with tasks to look at
	@$(PY) manage.py up $(APART) $(TOUR)

client: ## the command `broker` as one file, build/broker, for any machine with Python 3.9 or newer
	@$(PYTHON) -m broker_site.client.bundle build/broker

test: $(ENV) ## all tests, on private servers; PYTEST_ARGS="-k name" chooses
	@$(PY) -m pytest $(PYTEST_ARGS)

soak: $(ENV) ## the long forms of tests, one after the other: chaos, benchmarks and oracles at size (an hour)
	@$(PY) -m pytest -n 0 -m long --hypothesis-profile thorough

lint: $(ENV) ## every static check
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	@# The oldest Python that mypy knows: what came to the standard library since is no part of the client.
	$(PY) -m mypy --python-version 3.10 broker_site/client
	.venv/bin/lint-imports --no-cache --no-logo
	@# A key made for this one check: production settings are checked as production would run them.
	GRIDBROKER_PROFILE=production DATABASE_URL=postgresql://broker@db.invalid/broker REDIS_URL=rediss://redis.invalid/0 \
		ALLOWED_HOSTS=broker.invalid TLS_PROXY_HEADER='X-Forwarded-Proto: https' SECRET_KEY="$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(50))')" \
		$(PY) manage.py check --deploy --fail-level WARNING
	$(PY) -W 'ignore:Got an error checking a consistent migration history:RuntimeWarning' manage.py makemigrations --check --dry-run

bench: $(ENV) ## every benchmark, one JSON line each
	@$(PY) -m benchmarks all

lock: ## write requirements.lock anew from pyproject.toml; needs uv
	uv pip compile pyproject.toml --universal --python-version 3.11 --all-extras --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --quiet --output-file requirements.lock

clean: ## remove the environment and all local state (stop a running `make up` before)
	@if [ -x $(PY) ]; then $(PY) -m broker_site.roof.embedded; fi
	rm -rf .venv .gridbroker .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
