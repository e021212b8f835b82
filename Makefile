# ragparity: what you can do here. Each target sets up what it needs in .venv; nothing else has to be installed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/.stamps

.DEFAULT_GOAL := help
.PHONY: help demo test lint types format all bench matrix clean

help:  ## print this help
	@echo "make TARGET, with TARGET one of"
	@sed -n 's/^\([a-z]*\):.*  ## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-10s %s\n", $$1, $$2}'

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "Python 3.11 to 3.13 is needed; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/base: $(STAMPS)/venv pyproject.toml
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(STAMPS)/test: $(STAMPS)/venv pyproject.toml
	@$(BIN)/python -m pip install --quiet --editable '.[data,stats,text,ragas,nat,openevals,phoenix,deepeval]' --group test
	@touch $@ $(STAMPS)/base

$(STAMPS)/lint: $(STAMPS)/test pyproject.toml
	@$(BIN)/python -m pip install --quiet --group lint
	@touch $@

demo: $(STAMPS)/base  ## score the demonstration rows with the offline judge: no model, no network, no key
	$(BIN)/ragparity eval configs/quickstart.yml --overwrite

test: $(STAMPS)/test  ## run the tests
	$(BIN)/python -m pytest -q

lint: $(STAMPS)/lint  ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/lint  ## check types
	$(BIN)/mypy

format: $(STAMPS)/lint  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMPS)/test  ## measure speed and cost; every figure is a ratio within one run
	$(BIN)/python -m tests.benchmarks

matrix:  ## install and try every extra, toolkit and Python in environments of their own; ONLY="base ragas" for some
	$(PYTHON) -m tests.matrix $(ONLY)

all: lint types test demo  ## everything that must hold before a change is done

clean:  ## remove the environment and what runs leave behind
	rm -rf $(VENV) .bench .pytest_cache .mypy_cache .ruff_cache .hypothesis .matrix out dist build
