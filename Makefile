# Two commands matter: `make run` serves a working fleet, `make test` proves it works.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Containers often forbid it; then every process compiles all of Drover, and every test its asserts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test suite lint docs bench bench-compare soak openapi client dist screenshots agent-command lock clean

run: $(VENV)/.installed
	@exec $(BIN)/python manage.py up

# The second database gets the tests of rows, races, and its own faults. Pages, commands, containers
# and Redis do the same on any database.
ON_ROWS := $(addprefix tests/agents_app/,accounts admin/test_admin.py admin/test_scale.py budgets \
  database events maintenance notifications output project reports runs scheduler schedules secrets signals \
  webhooks work_sources/test_directory.py work_sources/test_interrupted.py worker rules/engine) \
  $(addprefix tests/gateway_app/,api signals streams webhooks) tests/races tests/simulation/test_downtime.py \
  $(addprefix tests/faults/test_,gateway_killed.py gateway_postgres.py postgres_away.py) \
  --ignore tests/gateway_app/api/test_live.py
# Every day the tests of the packages. CI asks for everything: the second database, and directories
# whose tests start the whole of Drover, a browser or competing processes.
LEFT_TO_CI := browser end_to_end faults races simulation upgrade
EVERY_DAY := $(if $(DROVER_REQUIRE_ALL),,-m "not slow" $(addprefix --ignore tests/,$(LEFT_TO_CI)))

# The runner repeats once what failed, names what passed only then, and counts all in its last line.
test: lint suite

suite: $(VENV)/.installed-dev
	MAKEFLAGS= $(BIN)/python -m tests.parts.run_suite -- $(or $(DROVER_TEST_DATABASE),sqlite) $(EVERY_DAY) \
	  $(if $(DROVER_REQUIRE_ALL),-- postgres $(ON_ROWS))

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy manage.py scheduler_project agents_app gateway_app tests/parts
	$(BIN)/python manage.py makemigrations --check --dry-run

# Reference pages from the code, then the site in site/; tests/docs builds it as well.
docs: $(VENV)/.installed-dev
	$(BIN)/python -m tests.docs.generate
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: $(VENV)/.installed-dev
	$(BIN)/python -m tests.benchmarks

# `make bench-compare REV=HEAD~1` measures this checkout and a commit alternately.
bench-compare: $(VENV)/.installed-dev
	$(BIN)/python -m tests.benchmarks.compare $(or $(REV),HEAD~1) $(NAMES)

# `make soak SECONDS=120` kills random processes under load, on both databases one after the other.
soak: $(VENV)/.installed-dev
	$(BIN)/python -m tests.soak --seconds $(or $(SECONDS),600) $(if $(DATABASE),--database $(DATABASE))

# Written aside first: a document that cannot be built must not replace the old one.
openapi: $(VENV)/.installed
	@$(BIN)/python -m scheduler_project.openapi > $(VENV)/openapi.json
	@mv $(VENV)/openapi.json docs/reference/openapi.json

# The typed client of the API as a wheel in dist/.
client: $(VENV)/.installed-dev
	$(BIN)/python -m tests.gateway_app.client.generate dist

# The sdist, the wheel and the list of components in dist/, built twice and installed once.
dist: $(VENV)/.installed-dev
	$(BIN)/python -m tests.distribution

screenshots: $(VENV)/.installed-dev
	$(BIN)/python -m tests.browser.take_screenshots

# The commands of agents derive from agents_app/signals/declarations.py; a test finds a difference.
agent-command: $(VENV)/.installed
	$(BIN)/python manage.py shell -v 0 -c 'from agents_app.signals import write_command; write_command()'

# Versions and hashes for all platforms; versions stay, unless pyproject.toml asks for others or
# OPTIONS says `--upgrade` or `--upgrade-package NAME`. The tests need a newer Python than Drover.
# One version of uv, because another one may write the files differently.
UV := uv==0.13.8
LOCK := $(VENV)/lock/bin/uv pip compile pyproject.toml --no-config --universal --generate-hashes \
  --no-annotate --no-header --quiet $(OPTIONS)
lock:
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check $(UV)
	$(LOCK) --python-version 3.11 --output-file requirements.lock
	$(LOCK) --python-version 3.11.5 --extra dev --constraint requirements.lock --output-file requirements-dev.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache

# A lock file that changed since the last install is installed again.
$(VENV)/.installed: requirements.lock | $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock | $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	@touch $@ $(VENV)/.installed

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Drover needs Python 3.11 or newer: make PYTHON=python3.11 run")'
	$(PYTHON) -m venv $(VENV)
