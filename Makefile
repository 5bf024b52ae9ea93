# Everything a developer runs. Needs Python 3.11+ and make; the rest is installed into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.setup-done
BEFORE ?= main
SUITES := single queries window multiway smallest ilp adaptive tpch-multi materialize adhoc skew theta aggregates \
	placement partition elastic faults hostile steady

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all coverage first-hour lint fmt bench bench-report bench-quick compare options functions api \
	walk mutants clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv and install Dovetail with its development tools

# Runs again only when the dependencies may have changed.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Dovetail needs Python 3.11 or newer; run: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Dovetail and all that it needs into $(VENV): almost 2 GB, a few minutes (once)"
	$(BIN)/python -m pip install --disable-pip-version-check -e '.[dev]'
	@echo "Warming up, so that later starts are quick (a machine that cannot be warmed up works as well)"
	@$(BIN)/dovetail warm-up || true
	@touch $@

demo: $(STAMP) ## Run the live demo for a minute (Ctrl-C ends it earlier)
	@$(BIN)/dovetail demo

test: $(STAMP) ## Run the fast tests: unit, property, Spark (ten minutes)
	@$(BIN)/python -m tools.run_tests

test-all: $(STAMP) ## Run all tests, also the slow ones, thousands of random cases and Kafka
	@$(BIN)/python -m tools.run_tests --all

coverage: $(STAMP) ## Print the branch coverage of `make test`, room by room
	@$(BIN)/python -m tools.coverage

TIMES ?= 1
LOAD  ?= 0
first-hour: $(STAMP) ## Run every program and command of the pages as written (TIMES=10 LOAD=8: often, on a busy machine)
	@$(BIN)/python -m tools.first_hour --times $(TIMES) --load $(LOAD)

lint: $(STAMP) ## Check style, format, types and import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(STAMP) ## Format the code and apply safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## Run all benchmark suites and rewrite docs/benchmarks.md (hours; SUITES=single runs one)
	@set -e; for suite in $(SUITES); do $(BIN)/dovetail bench $$suite --json docs/benchmarks/$$suite.json; done
	@$(BIN)/python -m benchmarks.report.page

bench-report: $(STAMP) ## Rewrite docs/benchmarks.md and its plots from docs/benchmarks/*.json
	@$(BIN)/python -m benchmarks.report.page

bench-quick: $(STAMP) ## Run a short form of all suites, to see that they work
	@set -e; for suite in $(SUITES); do $(BIN)/dovetail bench $$suite --quick --json bench-results/quick/$$suite.json; done

compare: $(STAMP) ## Compare this tree's speed with a revision's, in turn (BEFORE=main; half an hour)
	@$(BIN)/python -m benchmarks.compare.compare $(BEFORE)

options: $(STAMP) ## Rewrite docs/options.md from the records that hold the options
	@$(BIN)/python -m tools.options_page

functions: $(STAMP) ## Rewrite the list of scalar functions in docs/sql.md from the table that binds them
	@$(BIN)/python -m tools.functions_page

api: $(STAMP) ## Rewrite docs/api.md from the docstrings of what users import
	@$(BIN)/python -m tools.api_page

walk: $(STAMP) ## Follow one query from SQL to answer, file by file
	@$(BIN)/python -m tools.walk

mutants: $(STAMP) ## Plant bugs one at a time and see that the tests find each (minutes)
	@$(BIN)/python -m tools.mutants

clean: ## Remove .venv, caches and build output
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
