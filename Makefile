# Everything needs only Python 3.11+, git and a package registry. A newcomer needs only `make run` and `make test`.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.parlour-ready
PEER   := build/bench-peer
ARGS   ?=
# Twice the two cores of a small machine, because many tests wait: three leave an eighth of the time unused. They need 4 GB.
WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help run chat test cluster soak check mutate bench eval models setup format lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

run: models ## set everything up and start the gateway
	@$(BIN)/parlour serve $(ARGS)

chat: models ## the same bot in this terminal
	@$(BIN)/parlour chat $(ARGS)

# Without bytecode every worker compiles every test again, and every process that a test starts all of its modules.
test: export PYTHONDONTWRITEBYTECODE =
test: models ## set everything up and run every test
	@$(BIN)/parlour models get voice-en
	@$(BIN)/python -m tests.support.browser
	@$(BIN)/python -m pytest --workers $(WORKERS) $(ARGS)

cluster: models ## three processes on Postgres and Valkey from wheels, with the page, to try: make cluster ARGS="--workers 3"
	@$(BIN)/python -m tools.cluster $(ARGS)

soak: models ## the runs that kill the gateway at random moments, for minutes instead of seconds
	@$(BIN)/python -m pytest --soak -m soak $(ARGS)

check: setup ## format, lint, types, import contracts, docs (the tests are `make test`)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tools/check.sh

mutate: setup ## small faults in the core modules, and how many the tests catch: make mutate ARGS="--per-module 3"
	@$(BIN)/python -m tools.mutate $(ARGS)

bench: models $(if $(NAME),$(if $(filter graph companion workflows,$(NAME)),$(PEER)/.ready),$(PEER)/.ready) ## all benches, or one: make bench NAME=turn
	@$(BIN)/python -m bench $(NAME) $(ARGS)

eval: models ## test the bot on our own prompts, judged by code: make eval NAME=embedded
	@$(BIN)/python -m evals $(NAME) $(ARGS)

models: setup
	@mkdir -p models
	@$(BIN)/parlour models get

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml tools/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh tools/setup.sh
	@touch $@

# LangGraph, for the graph bench, outside of our environment: it installs a pytest plugin.
$(PEER)/.ready: bench/peer.lock | setup
	@printf 'installing LangGraph for the graph bench in %s\n' '$(PEER)' >&2
	@$(BIN)/python -m venv --clear $(PEER)
	@$(BIN)/uv pip install --quiet --python $(PEER)/bin/python --compile-bytecode --require-hashes -r bench/peer.lock \
		|| $(PEER)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r bench/peer.lock
	@touch $@

format: setup ## format the sources
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock"

lock: setup ## resolve the dependencies again
	@$(COMPILE) --all-extras --group dev pyproject.toml -o requirements.lock
	@$(COMPILE) --constraint requirements.lock --extra postgres --extra redis pyproject.toml -o deploy/runtime.lock
	@$(COMPILE) --constraint requirements.lock --group bench -o bench/peer.lock
	@grep -A2 '^hatchling==' requirements.lock | grep -oE '^hatchling==[0-9.]+' | $(COMPILE) --constraint requirements.lock - -o deploy/build.lock

clean: ## remove the environment and every cache, keep data and models
	@rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
