# MAIA Web. Everything lives in .venv/ (packages) and var/ (state); `make` alone lists what there is.

PORT ?= 8000
ARGS ?=
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
STAMP := .venv/requirements.stamp
CPU_INDEX := https://download.pytorch.org/whl/cpu
TORCH := $(shell grep '^torch==' requirements.lock)
BESIDE := --numprocesses 3 --dist loadfile --no-loadscope-reorder
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip

# Compiled modules are kept: tests and commands start hundreds of processes, each of which would compile them anew
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run demo screenshots test test-more lint bench bench-gpu lock clean

help:
	@echo "MAIA Web. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile

setup: $(STAMP)  ## make .venv and install the pinned packages (nothing to do if they are there)

run: $(STAMP)  ## start everything and print a link to open; PORT=8001 for another port, Ctrl+C stops
	@exec $(BIN)/python manage.py up --port $(PORT) $(ARGS)

demo: $(STAMP)  ## start everything on var/demo, filled with a small team's week while you look; Ctrl+C stops, the next start goes on
	@exec $(BIN)/python manage.py demo --port $(PORT) $(ARGS)

screenshots: $(STAMP)  ## fill the demo, and make the README's pictures of it anew; needs a Chromium
	@$(BIN)/python manage.py demo --once --port $(PORT) $(ARGS)
	@$(BIN)/python -m tests.support.screenshots

test: $(STAMP)  ## run all tests; those that this machine cannot run are named at the end, with the reason
	@$(BIN)/python -m tests.support.second_look -m "not bench and not more" $(BESIDE) --no-fold-skipped $(ARGS)

test-more: $(STAMP)  ## what takes longer: all of the database's tests on PostgreSQL, all attacks as an ordinary user, faults
	@$(BIN)/python -m tests.support.second_look -m more $(BESIDE) --timeout 1200 $(ARGS); red=$$?; \
	$(BIN)/python -m tests.support.on_postgres -m "not bench and not more" $(BESIDE) || red=1; exit $$red

lint: $(STAMP)  ## check format (Python and templates), style, types, migrations and settings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/djangofmt --check --quiet templates
	$(BIN)/mypy maia_web experiments workers static/client manage.py
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check

bench: $(STAMP)  ## measure, and print the figures as tables
	@$(BIN)/python -m pytest -m bench -s --timeout 0 tests/benches/bench_*.py tests $(ARGS)

bench-gpu: $(STAMP)  ## measure networks and pipelines of the true shapes on a GPU, in about ten minutes; without one, small shapes
	@$(BIN)/python -m pytest -m bench -s --timeout 0 tests/benches/bench_gpu.py $(ARGS)

lock: $(STAMP)  ## pin again, after a change of the dependencies in pyproject.toml
	$(BIN)/python .ci/lock

clean:  ## remove .venv and caches; what is in var/ stays
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock
	@test "$$(uname -s)" = Linux || { echo "MAIA Web runs on Linux: the sandbox for the agent's programs needs its kernel.\
	 On macOS or Windows use a Linux virtual machine or WSL 2."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "Python 3.11 or newer is missing ($$($(or $(PYTHON),python3) --version 2>&1)).\
	 Install it, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments.\
	 On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@if $(PIP) show --quiet torch 2>/dev/null; then true; \
	elif command -v nvidia-smi >/dev/null || test -e /proc/driver/nvidia; then \
		echo "Installing PyTorch for CUDA: a download of about 2.6 GB."; \
		$(PIP) install $(TORCH); \
	else \
		echo "No NVIDIA GPU here. Installing PyTorch for CPUs: a download of about 200 MB."; \
		$(PIP) install --timeout 5 --retries 0 --no-deps --index-url $(CPU_INDEX) $(TORCH) 2>/dev/null || { \
			echo "$(CPU_INDEX) does not answer. Trying the ordinary package index:" \
				"its PyTorch for Linux brings CUDA's libraries, a download of up to 2.6 GB."; \
			$(PIP) install $(TORCH); \
		}; \
	fi
	@echo "Installing the pinned packages: a download of about 190 MB the first time."
	@$(PIP) install --quiet --requirement requirements.lock
	@touch $@
