# make demo: the embedded experiment; make test: all tests. Both make .venv and install what they need first.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
BIN := .venv/bin

.PHONY: demo test lint bench install clean

install:
	@$(PYTHON) .ci/install.py

demo: install
	@$(BIN)/proctor run configs/experiments/demo.yaml

test: install
	@$(BIN)/python -m pytest -n 2 --dist loadfile

lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: install
	@for file in tests/performance/*.py; do $(BIN)/python -m tests.performance.$$(basename $$file .py) || exit 1; done

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
