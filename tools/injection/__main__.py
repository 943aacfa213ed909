"""`python -m tools.injection [FILE]`: train the weights of the shield's linear model and write them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.shield.injection.linear_model import FILE, to_bytes
from tools.injection.texts import training_grammars
from tools.injection.training import ENGLISH, EPOCHS, OTHER, SEED, train


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and write; takes a minute or two."""
    parser = argparse.ArgumentParser(prog="python -m tools.injection", description=__doc__)
    parser.add_argument(
        "file", nargs="?", type=Path, default=FILE, help=f"default: {FILE.name} in the package"
    )
    options = parser.parse_args(arguments)
    model = train(training_grammars())
    note = f"seed {SEED}, {ENGLISH} + {OTHER} attacks a language, {EPOCHS} epochs"
    options.file.write_bytes(to_bytes(model, note))
    sys.stdout.write(f"{options.file}: threshold {model.threshold}, bias {model.bias}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
