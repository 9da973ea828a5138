# Needs Python 3.11 or later and make. Everything else is installed into .venv on first use.

PYTHON ?= python3
VENV := .venv
AUDIT := .venv-audit
INSTALL := pip install --quiet --disable-pip-version-check --no-input
PIP := $(VENV)/bin/$(INSTALL)
# One file, one process: what its tests share is made once. In the order of names, so that long files come first.
# One process more than cores: some tests wait, for a browser or a server.
PYTEST_ARGS ?= -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist loadfile --no-loadscope-reorder
# One BLAS thread for each test process: the processes fill the cores already. What they compile is kept: each would
# compile it again, and each program that a test starts.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest
PAPER := figure1 figure2 figure3 histogram kung_comparison table1

.DEFAULT_GOAL := help
.PHONY: help demo app test test-all test-torch coverage lint audit bench paper docs clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.plots  ## plan, release, verify and draw generated heights, into demo-output/
	$(VENV)/bin/python -m cloakgp.demo

app: $(VENV)/.app  ## open the app with generated heights in it
	$(VENV)/bin/cloakgp serve --demo --data demo-app

test: lint $(VENV)/.tools  ## lint, then all tests but the slow ones
	$(PYTEST) -m 'not slow' $(PYTEST_ARGS)

# `make test test-all` is the same: make runs a target once.
test-all: test  ## the same, then the slow tests
	$(PYTEST) -m slow $(PYTEST_ARGS)

# Those that `make test` skips on a machine without torch.
test-torch: $(VENV)/.tools  ## only the tests that need PyTorch, which must be installed
	$(VENV)/bin/python -c 'import torch'
	$(PYTEST) -m torch $(PYTEST_ARGS)

# Without processes that tests start, which are not looked into.
coverage: $(VENV)/.tools  ## test-all, and which lines of the library no test runs; at most 3 % may be left
	rm -f .coverage
	$(MAKE) test test-all PYTEST_ARGS='$(PYTEST_ARGS) --cov --cov-append --cov-report='
	$(VENV)/bin/coverage report --fail-under=97

lint: $(VENV)/.all  ## style and types
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

# jax-privacy's accounting wants an older attrs than our tools: an environment of its own.
audit: $(AUDIT)/.audit  ## an audit of every mechanism by jax-privacy; takes minutes
	OPENBLAS_NUM_THREADS=1 $(AUDIT)/bin/python -m audit

bench: $(VENV)/.all  ## run every script in benchmarks/
	@set -e; for script in benchmarks/*.py; do \
	    [ -e "$$script" ] || continue; echo "== $$script"; $(VENV)/bin/python "$$script"; \
	done

# On the real data where CLOAKGP_DATA names a folder that has them, else on look-alikes.
paper: $(VENV)/.all  ## the paper's figures and tables, into experiments/paper/output/
	@set -e; mkdir -p experiments/paper/output; for script in $(PAPER); do \
	    echo "== $$script"; $(VENV)/bin/python experiments/paper/$$script.py; \
	done
	@echo "== figure 4"; $(VENV)/bin/python experiments/selection.py --output experiments/paper/output/figure4.png

# From scratch each time: examples of the gallery run again, on the library as it is.
docs: $(VENV)/.all  ## build docs/_build/index.html and look at it on a phone's width; a warning is an error
	rm -rf docs/generated docs/_build
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/sphinx-build --quiet --fail-on-warning --keep-going -b html docs docs/_build
	$(VENV)/bin/python docs/look.py
	@echo "docs/_build/index.html"

clean:  ## remove what the other targets made, .venv included
	rm -rf $(VENV) .venv-ci $(AUDIT) docs/_build docs/generated docs/gallery/*.cloak demo-output demo-app .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests audit benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Stamps: installed since pyproject.toml last changed. The demo needs little, the rest needs all.
$(VENV)/.plots: pyproject.toml | $(VENV)/bin/python
	@echo "installing cloakgp and matplotlib into $(VENV)"
	@$(PIP) --editable '.[plots]'
	@touch $@

$(VENV)/.app: pyproject.toml | $(VENV)/bin/python
	@echo "installing cloakgp and its app into $(VENV)"
	@$(PIP) --editable '.[app]'
	@touch $@ $(VENV)/.plots

$(VENV)/.all: pyproject.toml | $(VENV)/bin/python
	@echo "installing cloakgp and its development tools into $(VENV)"
	@$(PIP) --editable '.[all,dev]'
	@touch $@ $(VENV)/.plots $(VENV)/.app

$(VENV)/.tools: tests/install_tools.sh $(VENV)/.all
	@tests/install_tools.sh $(PIP)
	@touch $@

$(AUDIT)/.audit: pyproject.toml
	@echo "installing cloakgp and jax-privacy into $(AUDIT)"
	@[ -x $(AUDIT)/bin/python ] || $(PYTHON) -m venv $(AUDIT)
	@$(AUDIT)/bin/$(INSTALL) --editable '.[audit]'
	@touch $@
