"""A classifier of injected instructions from a folder: `model.onnx`, `tokenizer.json` and, if there is one,
`config.json`, as they are published for text classification. Blocking; `onnx_classifier` runs it in a thread.

The only module that imports tokenizers; onnxruntime is imported by those of the voice, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime  # type: ignore[import-untyped]  # it ships no types
from tokenizers import Encoding, Tokenizer

from pipeline.domain.errors import ConfigurationError

MODEL, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
MOST_MODEL_BYTES: Final = 2 << 30
MOST_TOKENIZER_BYTES: Final = 64 << 20
MOST_CONFIG_BYTES: Final = 1 << 20
_TOKENS = 512
"""Of one window. A model for fewer says so in its configuration."""
_FEWEST_TOKENS = 16
_MOST_WINDOWS = 256
_BATCH = 8
_HARMLESS = frozenset(
    ("safe", "benign", "legit", "legitimate", "clean", "harmless", "negative", "label_0", "0", "no_injection")
)
_TRIAL = "The library opens at nine."
_KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")

Matrix = npt.NDArray[np.float64]


class TooLong(Exception):
    """The texts have more windows than are read."""


class OnnxModel:
    """Scores texts. `scores` runs in one thread at a time, and `stop` may be called from another one."""

    def __init__(self, folder: Path) -> None:
        """Read the files and score one harmless text. Raises ConfigurationError, which names the file and
        what is wrong with it."""
        self._folder = folder
        files = {name: folder / name for name in (MODEL, TOKENIZER)}
        _checked_size(files[MODEL], MOST_MODEL_BYTES)
        _checked_size(files[TOKENIZER], MOST_TOKENIZER_BYTES)
        config = _config(folder / CONFIG)
        self._tokenizer = _tokenizer(files[TOKENIZER], config)
        self._session = _session(files[MODEL])
        self._inputs = [one.name for one in self._session.get_inputs()]
        self._harmless = _harmless_labels(config, folder / CONFIG)
        self._run_options: Any = None
        if unknown := [name for name in self._inputs if name not in _KNOWN_INPUTS]:
            known = ", ".join(_KNOWN_INPUTS)
            raise ConfigurationError(
                f"{files[MODEL]}: its input {unknown[0]} is not known; known are {known}"
            )
        if "input_ids" not in self._inputs:
            raise ConfigurationError(f"{files[MODEL]}: it has no input input_ids, so it reads no text")
        try:
            self.scores((_TRIAL,))
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"{files[MODEL]} cannot score a text with {TOKENIZER}: {_line(error)}"
            ) from error

    def scores(self, texts: Sequence[str]) -> tuple[float, ...]:
        """For each text the highest probability of an attack among its windows. Raises TooLong, and whatever
        the libraries raise."""
        windows = [(number, one) for number, text in enumerate(texts) for one in self._windows(text)]
        if len(windows) > _MOST_WINDOWS:
            raise TooLong(f"{len(windows)} windows; at most {_MOST_WINDOWS} are read")
        highest = [0.0] * len(texts)
        for start in range(0, len(windows), _BATCH):
            batch = windows[start : start + _BATCH]
            found = self._of_batch([encoding for _, encoding in batch])
            for (number, _), score in zip(batch, found, strict=True):
                highest[number] = max(highest[number], score)
        return tuple(highest)

    def stop(self) -> None:
        """End the current run, which then raises."""
        options = self._run_options
        if options is not None:
            options.terminate = True

    def _windows(self, text: str) -> Iterator[Encoding]:
        encoding = self._tokenizer.encode(text)
        yield encoding
        yield from encoding.overflowing

    def _of_batch(self, encodings: Sequence[Encoding]) -> list[float]:
        width = max(1, *(len(one.ids) for one in encodings))
        rows = {
            "input_ids": _padded([one.ids for one in encodings], width),
            "attention_mask": _padded([one.attention_mask for one in encodings], width),
            "token_type_ids": _padded([one.type_ids for one in encodings], width),
        }
        self._run_options = onnxruntime.RunOptions()
        try:
            outputs = self._session.run(None, {name: rows[name] for name in self._inputs}, self._run_options)
        finally:
            self._run_options = None
        return self._probabilities(np.asarray(outputs[0], np.float64), len(encodings))

    def _probabilities(self, logits: Matrix, count: int) -> list[float]:
        """Of an attack: of all labels but the harmless ones, or of the one output."""
        file = self._folder / MODEL
        if logits.ndim != 2 or logits.shape[0] != count or not 1 <= logits.shape[1] <= 100:
            shape = "x".join(map(str, logits.shape)) or "one number"
            raise ConfigurationError(f"{file}: its first output is no row of labels for each text ({shape})")
        if not np.isfinite(logits).all():
            raise ConfigurationError(f"{file}: it returned what is no number")
        if logits.shape[1] == 1:
            return [1 / (1 + math.exp(-max(-60.0, min(60.0, float(value))))) for value in logits[:, 0]]
        if max(self._harmless) >= logits.shape[1]:
            raise ConfigurationError(f"{file}: it has fewer labels than {CONFIG} names")
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares = powers / powers.sum(axis=1, keepdims=True)
        return [float(value) for value in 1 - shares[:, sorted(self._harmless)].sum(axis=1)]


def _checked_size(file: Path, most: int) -> None:
    try:
        size = file.stat().st_size
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from None
    if size > most:
        raise ConfigurationError(f"{file} is too large: {size:,} bytes, at most {most:,} are read")


def _config(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    _checked_size(file, MOST_CONFIG_BYTES)
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file} is no JSON: {_line(error)}") from None
    if not isinstance(found, dict):
        raise ConfigurationError(f"{file}: expected an object")
    return found


def _harmless_labels(config: dict[str, Any], file: Path) -> frozenset[int]:
    """The numbers of the labels that are no attack; the first one without names."""
    names = config.get("id2label")
    if not isinstance(names, dict) or not names:
        return frozenset((0,))
    try:
        labels = {int(number): str(name) for number, name in names.items()}
    except ValueError:
        raise ConfigurationError(f"{file}: id2label maps numbers to names") from None
    found = frozenset(
        number for number, name in labels.items() if name.casefold().replace(" ", "_") in _HARMLESS
    )
    if not found or len(found) == len(labels):
        names_in_words = ", ".join(sorted(labels.values()))
        raise ConfigurationError(
            f"{file}: id2label has to name harmless and other labels ({names_in_words}); "
            f"harmless ones are called {', '.join(sorted(_HARMLESS))}"
        )
    return found


def _tokenizer(file: Path, config: dict[str, Any]) -> Tokenizer:
    longest = config.get("max_position_embeddings", _TOKENS)
    tokens = min(longest, _TOKENS) if isinstance(longest, int) and longest >= _FEWEST_TOKENS else _TOKENS
    try:
        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.no_padding()
        # Overlapping, so that an order at the end of a window is whole in the next one.
        tokenizer.enable_truncation(tokens, stride=tokens // 8)
    except Exception as error:
        raise ConfigurationError(f"{file} is no tokenizer: {_line(error)}") from error
    return tokenizer


def _session(file: Path) -> Any:
    options = onnxruntime.SessionOptions()
    # One thread: a text that is examined must not take the processor from all turns.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ConfigurationError(f"{file} is no model that can be run: {_line(error)}") from error


def _padded(rows: Sequence[Sequence[int]], width: int) -> npt.NDArray[np.int64]:
    table = np.zeros((len(rows), width), np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
