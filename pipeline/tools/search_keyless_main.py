"""The child process of `search_keyless`: one search by the library ddgs. It exchanges one line of JSON."""

from __future__ import annotations

import json
import signal
import sys

from ddgs import DDGS
from ddgs.exceptions import DDGSException


def main() -> int:
    """Search as the line on stdin says, and write the results, or the error's name, to stdout."""
    request = json.loads(sys.stdin.readline())
    # The process ends by itself where its parent was killed.
    signal.alarm(request["ends_s"])
    hits: list[tuple[str, str, str]] = []
    error = ""
    library = DDGS(
        proxy=request["proxy"], timeout=request["engine_s"], verify=request["certificates"] or True
    )
    try:
        found = library.text(request["query"], max_results=request["count"], backend=request["engines"])
        hits = [
            (str(one.get("title", "")), str(one.get("href", "")), str(one.get("body", ""))) for one in found
        ]
    except DDGSException as failure:
        # The library says so in words alone, also where each engine refused.
        error = type(failure).__name__
    sys.stdout.write(json.dumps({"hits": hits, "error": error}) + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
