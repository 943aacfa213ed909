"""The head of the crisis gate's vectors: how likely a text is of each level, by its sentence vector.

One hidden layer over the vector of `vectors.bin`'s model. What it says is added to what the linear model says
of the same text, as the two make different mistakes. `tools.crisis.vectors` trains it. It embeds nothing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.domain.frozen import dataclass
from pipeline.safety.assessment import CLEAR, IMMINENT, NONE
from pipeline.safety.danger_model import QUESTIONS, BadCrisisWeights, Scores, read_weights

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

FILE: Final = Path(__file__).with_name("vectors.bin")
LAYERS: Final = Path(__file__).with_name("layers.bin")
"""The encoder's last layers, which are tuned together with the head."""
MAGIC: Final = b"parlour crisis vectors 1\n"
LINEAR_SHARE: Final = 0.9
"""What the linear model's logit weighs beside that of the head."""
CLEAR_AT: Final = 1.8
"""The sum of the logits from which a text is clear."""
NEARLY_AT: Final = -0.7
"""That from which it counts as clear because it is likely imminent."""
LIKELY_AT: Final = -1.3
"""The sum of the logits of imminent danger from which it is."""
IMMINENT_AT: Final = -3.0
"""The same from which what is clear is level 3: a number of help too much is the smaller mistake."""
SURE_AT: Final = 0.0
"""The same from which what the patterns or the linear model find clear is level 3."""
DOUBTED_AT: Final = -0.8
"""The sum of the logits below which what the linear model alone finds is not clear."""
_NUMBER: Final = "<f2"
_SURE: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorHead:
    """Weights for the vectors of one embedding model."""

    model: str
    """Names the embedding model and its version; other vectors mean nothing to the head."""
    into: Floats
    """A column for each hidden unit."""
    hidden: Floats
    out: Floats
    """A column for each question of `Scores`."""
    biases: Floats

    def logits(self, vector: Sequence[float]) -> Scores:
        """The logits, not probabilities, of a text with this vector. Raises ValueError for a vector of
        another length, or with a number that is not finite."""
        import numpy as np  # noqa: PLC0415 - most gateways have no vectors

        values = np.asarray(vector, dtype=np.float32)
        if values.shape != self.into.shape[:1] or not np.isfinite(values).all():
            raise ValueError(f"The vector is none of {self.model}")
        units = np.maximum(values @ self.into + self.hidden, 0)
        return Scores(*(float(one) for one in units @ self.out + self.biases))


@dataclass(frozen=True, slots=True)
class JoinedScores:
    """What the head and the linear model say together of a text, as sums of logits."""

    clear: float
    imminent: float

    @property
    def level(self) -> int:
        """3, 2, or 0 for what is not clear. What is nearly clear and likely imminent is 3."""
        if self.clear >= CLEAR_AT:
            return IMMINENT if self.imminent >= IMMINENT_AT else CLEAR
        return IMMINENT if self.clear >= NEARLY_AT and self.imminent >= LIKELY_AT else NONE

    @property
    def is_doubted(self) -> bool:
        """Whether the text is not even clear if the linear model alone says so."""
        return self.clear < DOUBTED_AT and self.imminent < LIKELY_AT


def joined(head: Scores, linear: Scores) -> JoinedScores:
    """Both, from the head's logits and the linear model's probabilities."""
    return JoinedScores(
        head.clear + LINEAR_SHARE * _logit(linear.clear),
        head.imminent + LINEAR_SHARE * _logit(linear.imminent),
    )


def _logit(probability: float) -> float:
    kept = min(1 - _SURE, max(_SURE, probability))
    return math.log(kept / (1 - kept))


def to_bytes(parts: Sequence[npt.NDArray[np.float64]], header: Mapping[str, object]) -> bytes:
    """The file of a head: its tables in the order of `VectorHead`, and `model` among what `header` says."""
    body = b"".join(one.astype(_NUMBER).tobytes() for one in parts)
    known = {**header, "units": len(parts[1]), "sha256": hashlib.sha256(body).hexdigest()}
    return MAGIC + json.dumps(known, sort_keys=True).encode() + b"\n" + body


def from_bytes(data: bytes, name: str) -> VectorHead:
    """The head in the bytes of the file `name`. Raises BadCrisisWeights."""
    import numpy as np  # noqa: PLC0415 - most gateways have no vectors

    damaged = BadCrisisWeights(f"{name} is damaged or no file of crisis vectors; install the package again")
    line, _, body = data.removeprefix(MAGIC).partition(b"\n")
    if not data.startswith(MAGIC):
        raise damaged
    try:
        header = json.loads(line)
        model, units, digest = header["model"], header["units"], header["sha256"]
        numbers = np.frombuffer(body, dtype=_NUMBER).astype(np.float32)
        size = (len(numbers) - units - QUESTIONS * (units + 1)) // units
        shapes = ((size, units), (units,), (units, QUESTIONS), (QUESTIONS,))
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = [one.reshape(shape) for one, shape in zip(np.split(numbers, ends[:-1]), shapes, strict=True)]
    except (ValueError, KeyError, TypeError, ZeroDivisionError):
        raise damaged from None
    if hashlib.sha256(body).hexdigest() != digest or not isinstance(model, str):
        raise damaged
    return VectorHead(model=model, into=parts[0], hidden=parts[1], out=parts[2], biases=parts[3])


@functools.cache
def shipped_head() -> VectorHead:
    """The head in the package, loaded once. Raises BadCrisisWeights."""
    return from_bytes(read_weights(FILE), str(FILE))
