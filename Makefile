# `make` alone prints this file's targets.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/pytest -n 2

# Numbers of `make demo`: make demo DEMO_ITERATIONS=300 DEMO_ENVS=1024
DEMO_TASK ?= Ant-Direct
DEMO_ENVS ?= 128
DEMO_ITERATIONS ?= 60
DEMO_EPISODES ?= 16
DEMO_LOG_DIR := logs/demo/$(shell date +%Y-%m-%d_%H-%M-%S)

# Python 3.11 or 3.12 with the modules that `python -m venv` needs: make install PYTHON=/path/to/python
PYTHON_CHECK := import ensurepip, sys, venv; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))
PYTHON ?= $(shell for python in python3.11 python3.12 python3; do \
	if $$python -c '$(PYTHON_CHECK)' 2>/dev/null; then echo $$python; break; fi; done)

.PHONY: help install test test-all check format demo clean

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-9s %s\n' "$$name" "$$text"; done

install: $(STAMP)  ## create .venv and install Treadle with the tested versions

$(STAMP): pyproject.toml constraints/cpu.txt
	@if [ ! -x $(BIN)/pip ] && ! $(or $(PYTHON),false) -c '$(PYTHON_CHECK)' 2>/dev/null; then \
		echo "Treadle needs Python 3.11 or 3.12 with its venv module, and found none of them." >&2; \
		echo "Install one (Debian, Ubuntu: apt install python3.11-venv), or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; \
		exit 1; fi
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv $(VENV)
	@echo "Installing Treadle into $(VENV): a few minutes the first time."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints/cpu.txt -e ".[sim,rl,dev]"
	@touch $@

test: install  ## run the default tests: no GPU, a few minutes
	$(PYTEST) -m "not slow and not gpu" $(ARGS)

test-all: install  ## run the slow tests too
	$(PYTEST) -m "not gpu" $(ARGS)

check: install  ## lint, format, types, layers and sizes; changes nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_sizes.py

format: install  ## format the code and repair what lint can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

demo: install  ## train a policy for a short while, then play it
	$(BIN)/treadle train $(DEMO_TASK) --num-envs $(DEMO_ENVS) --max-iterations $(DEMO_ITERATIONS) --log-dir $(DEMO_LOG_DIR)
	$(BIN)/treadle play $(DEMO_TASK) --checkpoint $(DEMO_LOG_DIR) --num-episodes $(DEMO_EPISODES)

clean:  ## remove caches and build outputs; .venv and logs stay
	rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests scripts -name __pycache__ -prune -exec rm -rf {} +
