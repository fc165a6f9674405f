# Everything a developer runs. Needs make and Python >= 3.11 with venv; the rest is installed into .venv.

PYTHON ?= python3
BIN := .venv/bin

# Tests start hundreds of processes, each of which would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

# Each leaves out what the rules of those before it replay.
FAMILIES := core taso-matrices batches attention joins convolutions kernels identities constants channels spatial layout reductions pointwise quotients groups blocks enlarged taso-kernels depthwise rows resized

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: .venv/ready ## Create .venv and install superopt with all it needs to be developed

# Redone only when the dependencies may have changed.
.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("superopt needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

.PHONY: demo
demo: setup ## Optimize a small model and show what was found
	$(BIN)/python examples/demo.py

.PHONY: test
test: setup ## Check everything: style, types, imports, and all tests
	@$(MAKE) --no-print-directory --jobs 2 lint types imports
	$(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: floors
floors: ## Run all tests with the oldest of each library that superopt may be installed with
	$(PYTHON) -m venv build/floors
	build/floors/bin/python -m pip install --quiet uv
	build/floors/bin/uv pip install --quiet --python build/floors --resolution lowest-direct --editable '.[service,openvino]'
	build/floors/bin/python -m pip install --quiet --editable '.[dev]'
	build/floors/bin/python -m pytest -n 2 --dist loadfile -W default::DeprecationWarning

.PHONY: lint
lint: setup ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: setup ## Check types, strictly
	$(BIN)/mypy

.PHONY: imports
imports: setup ## Check that imports point down the layers
	$(BIN)/lint-imports

.PHONY: bench
bench: setup ## Measure the model suite, original beside optimized
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks.suite
	$(BIN)/python -m benchmarks.suite --published
	$(BIN)/python -m benchmarks.zoo

.PHONY: rules
rules: setup ## Find and prove the rules of all families afresh, into rules/
	@rm -rf build/rules && mkdir -p build/rules
	@beside=""; for family in $(FAMILIES); do \
	  echo "$$family"; out=build/rules/$$family.rules; \
	  $(BIN)/superopt rules generate --family $$family --out $$out $$beside --json > build/rules/$$family.json || exit; \
	  beside="$$beside --beside $$out"; \
	done
	@rm -f rules/*.rules && cp build/rules/*.rules rules/
	$(BIN)/python -m benchmarks.rules_page build/rules

.PHONY: taso
taso: setup ## Prove TASO's published rules, and say by how many of the shipped rules each is derived
	@rm -rf build/taso && mkdir -p build/taso
	$(BIN)/superopt rules import tests/rules/cases/taso-published.pb --from taso --out build/taso/published.rules
	$(BIN)/superopt rules covers rules build/taso/published.rules

.PHONY: clean
clean: ## Remove what the other targets made, .venv too
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
