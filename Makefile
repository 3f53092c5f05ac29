# Every target makes .venv if it is missing and installs what it needs, at the versions of constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test test-quick lint format bench clean

help:  ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "r2mad needs Python 3.11 or newer; name one: make PYTHON=python3.12 …"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,local,study]'
	@touch $@

demo: $(READY)  ## Watch a small language model debate on this machine (fetches 94 MB the first time).
	$(BIN)/r2mad demo $(if $(LIMIT),--limit $(LIMIT))

test: $(READY)  ## Run every test.
	$(BIN)/python -m pytest

test-quick: $(READY)  ## Run all tests but those marked slow.
	$(BIN)/python -m pytest -m 'not slow'

lint: $(READY)  ## Check style, types and the direction of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## Format the code and mend what can be mended.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## Measure what we cost against the ideal: the client side, a prompt cache, the memory, the masks.
	$(BIN)/python benchmarks/orchestration.py
	$(BIN)/python benchmarks/prefix.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/masking.py
	$(BIN)/python benchmarks/misconception.py
	$(BIN)/python benchmarks/study.py

clean:  ## Remove what the other targets made.
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
