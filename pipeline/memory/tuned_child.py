"""A child process of the embedding model with tuned layers, by the protocol of `embedding_child`.

Its argument is the file of the layers. It loads nothing of Parlour but the encoder.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pipeline.memory.embedding_child import serve
from pipeline.memory.encoder import Encoder
from pipeline.memory.encoder_file import installed


class _Tuned:
    """The encoder as `serve` calls it: there is one kind of text."""

    def __init__(self, encoder: Encoder) -> None:
        self.query = self.passage = encoder.vector


def main() -> int:
    """Serve until the parent closes the input. Exit code 1: the model could not be loaded."""
    return serve(_loaded)


def _loaded() -> tuple[_Tuned, str]:
    encoder = Encoder(installed(), Path(sys.argv[1]).read_bytes())
    return _Tuned(encoder), encoder.name


if __name__ == "__main__":
    sys.exit(main())
