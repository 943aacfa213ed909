#!/bin/sh
# All static checks. Runs every one, so that one run shows everything, and fails if any failed.
set -u
failed=""
step() {
    name=$1
    shift
    printf '== %s\n' "$name"
    "$@" || failed="$failed $name"
}
step format ruff format --check .
step lint ruff check .
step types mypy
step imports lint-imports
step docs python -m pytest -q tests/architecture
if [ -n "$failed" ]; then
    printf 'check: failed:%s\n' "$failed"
    exit 1
fi
printf 'check: all green\n'
