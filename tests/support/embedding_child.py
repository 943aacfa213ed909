"""A child of the embedding model's protocol for tests: a vector is the text's length and 1.0."""

from __future__ import annotations

import array
import base64
import json
import sys

from pipeline.memory.local_embedder import MODEL


def main() -> None:
    """Serve until the end of the input; some texts make it fail."""
    print(json.dumps({"model": MODEL}), flush=True)
    for line in sys.stdin:
        texts = json.loads(line)["texts"]
        if texts == ["die"]:
            return
        if texts == ["hang"]:
            continue
        if texts == ["nonsense"]:
            print("{", flush=True)
            continue
        vectors = [base64.b64encode(array.array("f", [len(text), 1.0])).decode() for text in texts]
        print(json.dumps({"vectors": [] if texts == ["too few"] else vectors}), flush=True)


if __name__ == "__main__":
    main()
