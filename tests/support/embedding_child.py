"""A child of the embedding model's protocol for tests: a vector is the text's length and 1.0."""

from __future__ import annotations

import array
import base64
import json
import sys

from pipeline.memory.local_embedder import MODEL


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until the end of the input; some texts make it fail."""
    _say(json.dumps({"model": MODEL}))
    for line in sys.stdin:
        texts = json.loads(line)["texts"]
        if texts == ["die"]:
            return
        if texts == ["hang"]:
            continue
        if texts == ["nonsense"]:
            _say("{")
            continue
        vectors = [base64.b64encode(array.array("f", [len(text), 1.0])).decode() for text in texts]
        _say(json.dumps({"vectors": [] if texts == ["too few"] else vectors}))


if __name__ == "__main__":
    main()
