# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The entry points of this repository; see CONTRIBUTING.md.

STEPS ?= 10000
SEED ?= 1
SECONDS ?= 3600
NAMESPACE ?= default
PYTHON ?= python3
VENV := .venv
export NAMESPACE
# Without bytecode each process compiles what it imports, which Ansible does for every task.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help deps inputs quickstart test test-unit lint mutation simulate chaos nightly versions distributions bench clean

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*##/\1:/p' $(MAKEFILE_LIST)

deps:  ## Install the requirements of the other targets: distribution packages (as root) and .venv
	@$(PYTHON) lab/bootstrap.py

quickstart: inputs  ## A real Kubernetes, the control plane, and a first VM: make quickstart NAMESPACE=shop
	@$(PYTHON) lab/bootstrap.py --quickstart
	@$(VENV)/bin/python -m lab.quickstart --namespace "$$NAMESPACE"

inputs:
	@$(PYTHON) lab/quickstart/inputs.py

test: deps  ## Everything that CI runs: lint, unit, component, lab, roles, e2e
	@mkdir -p .cache && rm -f .cache/failed-tests.txt .cache/sessions.json
	@$(VENV)/bin/nox --report .cache/sessions.json; code=$$?; $(VENV)/bin/python -m tests.summary; exit $$code

test-unit: deps  ## Unit, golden and story tests: no root, no cluster, about six minutes
	@$(VENV)/bin/nox -s unit

lint: deps  ## Format, lint, types, import contracts, Ansible's own checks
	@$(VENV)/bin/nox -s lint sanity

mutation: deps  ## All mutants, with a score for each file: hours. Some files: make mutation FILES='*/vm/*'
	@$(VENV)/bin/python -m tests.mutation all $(or $(FILES),'*')

simulate: deps  ## The reconcilers under random faults: make simulate STEPS=100000 SEED=7, or SCENARIO=migrations
	@$(VENV)/bin/python -m tests.controlplane.simulation --steps $(STEPS) --seed $(SEED) --scenario $(or $(SCENARIO),all)

chaos: deps  ## Random users and random faults on two nodes: make chaos SECONDS=3600 SEED=7, or MIGRATIONS=200
	@$(VENV)/bin/python -m tests.chaos --seconds $(SECONDS) --seed $(SEED) --migrations $(or $(MIGRATIONS),0)

nightly: deps  ## Checks that are too long for `make test`: all mutants, long simulations, chaos, other versions of ansible-core
	@$(VENV)/bin/nox -s nightly sanity_all

versions: deps  ## The life of a control plane on the oldest and the newest Kubernetes: make versions MINORS='1.34 1.35'
	@$(VENV)/bin/python -m tests.versions $(MINORS)

distributions: deps  ## A control plane and a machine with the settings of kubeadm, k3s, k0s, OpenShift: make distributions LIKE='k3s'
	@$(VENV)/bin/python -m tests.distributions $(LIKE)

bench: deps  ## The benchmarks: one JSON line per figure
	@$(VENV)/bin/python -m tests.bench

clean:  ## Undo quickstart: remove its lab and the files that this checkout created (other labs and the build cache stay)
	@if [ -x $(VENV)/bin/lab ]; then $(VENV)/bin/lab down; fi
	@rm -rf $(VENV) .nox .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .ansible
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
