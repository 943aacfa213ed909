#!/bin/sh
# Makes the project's own environment from the lock file, hashes checked. Called by make.
set -eu

say() { printf '%s\n' "$*" >&2; }

"$PYTHON" - <<'PY' || exit 1
import sys
if sys.version_info < (3, 11):
    sys.exit("Parlour needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.12 …" % sys.version_info[:2])
PY

if [ ! -x "$VENV/bin/python" ]; then
    say "[1/3] making the environment in $VENV"
    if ! "$PYTHON" -m venv "$VENV"; then
        say "The venv module is missing. On Debian: apt-get install python3-venv"
        exit 1
    fi
fi

# uv installs the locked set in seconds. Where it cannot be had, or cannot reach the registry that pip
# is configured for, pip installs the very same files.
UV_PIN="$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements.lock | head -n 1)"
say "[2/3] installing the locked dependencies"
if ! "$VENV/bin/python" -c 'import importlib.metadata as m, sys; sys.exit(m.version("uv") != sys.argv[1])' "$UV_PIN" 2>/dev/null; then
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$UV_PIN" 2>/dev/null || true
fi
if ! { [ -x "$VENV/bin/uv" ] && "$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python" --compile-bytecode \
        --require-hashes -r requirements.lock; }; then
    say "      uv could not do it; pip installs the same files, which takes a minute"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
fi

say "[3/3] installing parlour itself"
# The build backend is in the lock file, so nothing unpinned is fetched to build us.
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
