PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup check test slow lowest docs clean

setup: .venv/.ready

.venv/.ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -e '.[dev]'
	touch $@

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: setup
	$(BIN)/pytest -n 2 --dist loadfile

slow: setup
	$(BIN)/pytest -m slow
	$(BIN)/pytest -m "hypothesis and not slow" --hypothesis-profile drawn -n 2 --dist loadfile

# The lowest version of every dependency that pyproject.toml allows, in .venv-lowest.
lowest: setup
	.ci/lowest

# The pages are plain Markdown; what can go stale in them is a name, so their Python examples are checked.
docs: setup
	$(BIN)/pytest tests/test_docs.py

clean:
	rm -rf .venv .venv-lowest dist build .mypy_cache .ruff_cache .pytest_cache
