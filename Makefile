# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

TOP := $(CURDIR)
VENV ?= $(TOP)/.venv
BIN := $(VENV)/bin
TREE := $(TOP)/.build/tree
COLLECTION := $(TREE)/ansible_collections/cachefleet/storage

export ANSIBLE_COLLECTIONS_PATH := $(TREE)
export PYTHONDONTWRITEBYTECODE := 1
export PATH := $(BIN):$(PATH)

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

## -- what everything needs

$(VENV)/.installed: requirements.lock
	@echo "== virtual environment in $(VENV) (about a minute)"
	@python=$$(scripts/find-controller-python) && "$$python" -m venv $(VENV)
	@$(BIN)/pip install --quiet --require-hashes --requirement requirements.lock
	@touch $@

.PHONY: venv
venv: $(VENV)/.installed $(COLLECTION) ## the virtual environment and the collection's place in an import tree

$(COLLECTION):
	@mkdir -p $(@D)
	@ln -sfn $(TOP) $@

.PHONY: packages
packages: ## system packages, with apt (needs root or sudo; says what is missing)
	@scripts/install-packages

## -- the demonstration

.PHONY: demo
demo: packages venv ## boot a virtual machine, sweep its cache settings, print which is recommended and why
	@scripts/demo

.PHONY: demo-down
demo-down: venv ## remove the machines of the demonstration
	@scripts/demo down

## -- tests

.PHONY: test-fast
test-fast: packages venv ## lint, and the unit tests that the changes since their last run reach; the first run takes a quarter of an hour
	@scripts/test-steps unit-fast+lint

.PHONY: test-no-machines
test-no-machines: packages venv ## everything that needs no machines
	@scripts/test-steps unit+lint report-test sanity tarball

.PHONY: test
test: packages venv ## everything that CI runs
	@scripts/test-steps molecule+lint+unit+report-test+tarball+sanity

.PHONY: test-long
test-long: packages venv ## the long forms: every ansible-core and Python, every proof on real devices, power cuts at every step, test volumes, names and starts of cached devices, SCSI disks and newer kernels, known causes, recorded traces and the hits that they predict, an acceptance, site and sweep interrupted, the power-loss test and its laboratory, all tests on Python 3.8, 100,000 fuzzed inputs
	@CACHEFLEET_LONG=1 scripts/molecule-test
	@scripts/crash-test
	@scripts/volumes-test
	@scripts/origins-test
	@scripts/hardware-test
	@scripts/causes-test
	@scripts/trace-test
	@scripts/curves-test
	@scripts/accept-test
	@scripts/site-undo-test
	@scripts/site-kill-test
	@scripts/sweep-kill-test
	@scripts/power-loss-test
	@scripts/power-loss-matrix
	@CACHEFLEET_LONG=1 scripts/every-core
	@CACHEFLEET_LONG=1 scripts/for-each-core scripts/ansible-test-sanity
	@CACHEFLEET_LONG=1 scripts/target-python-tests $(VENV)
	@CACHEFLEET_FUZZ_INPUTS=100000 PYTHONPATH=$(TREE) $(BIN)/python -m pytest -q tests/unit/fuzz

.PHONY: lint
lint: venv ## ruff, yamllint, ansible-lint, licences, changelog, documentation, argument specifications of roles
	@echo "== ruff"; ruff format --check .; ruff check .
	@echo "== argument specifications of roles"; scripts/role-specs --check
	@echo "== READMEs of roles"; scripts/role-readmes --check
	@echo "== yamllint"; yamllint --strict .
	@echo "== reuse"; reuse lint --quiet || reuse lint
	@echo "== antsibull-changelog"; antsibull-changelog lint
	@echo "== antsibull-docs"; antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs=self --skip-rstcheck .
	@echo "== ansible-lint"; ansible-lint --offline --profile production

.PHONY: unit
unit: venv ## unit tests, with every ansible-core and the oldest Python of targets, as far as there are interpreters
	@status=0; scripts/for-each-core scripts/unit-tests || status=$$?; scripts/target-python-tests $(VENV) || status=$$?; exit $$status

.PHONY: unit-fast
unit-fast: venv ## unit tests that the changes since their last run reach
	@scripts/changed-unit-tests $(VENV)

.PHONY: report-test
report-test: packages venv ## the report of a campaign in a real Chromium
	@scripts/report-test $(VENV)

.PHONY: sanity
sanity: venv ## ansible-test sanity, with every ansible-core there is an interpreter for
	@scripts/for-each-core scripts/ansible-test-sanity

.PHONY: tarball
tarball: venv ## build the collection, install it elsewhere, run it there
	@scripts/for-each-core scripts/tarball-test
	@scripts/every-core 2.16

.PHONY: molecule
molecule: packages venv ## molecule with testinfra on real machines
	@scripts/molecule-test

.PHONY: docs
docs: venv ## the documentation as a web site: all guides, modules and roles, in .build/docs/html
	@echo "== documentation"; scripts/build-docs

.PHONY: clean
clean: ## remove what was built here (not the machine image, which is kept per user)
	rm -rf .build .venv .venv-other .venv-target .ansible .pytest_cache .ruff_cache .hypothesis tests/output
