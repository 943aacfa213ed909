"""The file reader that the composition root builds."""

from __future__ import annotations

import pytest

from gateway.app.reading import build_reader
from gateway.config import load
from pipeline.domain.clock import SystemClock
from pipeline.domain.readings import FileUnreadable


async def test_the_file_reader_has_the_limits_of_the_settings() -> None:
    settings = load(None, {}, ["files.max_mb=1", "files.max_pages=2", "files.read_timeout_s=9"])
    reader = build_reader(settings, SystemClock())
    with pytest.raises(FileUnreadable, match="I read files of up to 1 MB"):
        await reader.document(bytes(1_000_001), name="", mime="")
    found = await reader.document(b"x" * 9_000, name="", mime="")
    await reader.close()
    assert (len(found.pages), found.cut) == (2, True)
