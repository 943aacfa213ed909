"""`python -m tests.support.api_child FOLDER LABEL:N`: use the API and crash at the label.

The exit code is the crash label's, or 0 if the label was not reached. FOLDER/run gets the id of the run, once
it is known.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.support.api_client import api_overrides, open_api
from tests.support.workflow_child import DRAFT, triage_model

INPUT = "I want my money back"
KEY = "order-4711"


async def main(folder: Path, crash_at: str) -> None:
    """Start the triage workflow with a key, approve, and wait for the end."""
    llm = triage_model("refund", DRAFT)
    async with open_api(folder, *api_overrides(folder), llm=llm, crash_at=crash_at) as api:
        run_id = await api.start(INPUT, key=KEY)
        (folder / "run").write_text(run_id, "utf-8")
        await api.until(run_id, "paused")
        await api.send("POST", f"/api/runs/{run_id}/answers", body={"choice": "approve"})
        await api.until(run_id, "completed")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
