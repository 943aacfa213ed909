"""The page that the gateway builds: what its log says about added languages."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from gateway.app.web import make_page
from gateway.channels.timeline import StoreTimeline
from gateway.config import load
from gateway.runtime.http_server import Addresses
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock


def test_mistakes_in_added_languages_are_in_the_log_and_do_not_stop_the_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "pt.json").write_text(json.dumps({"language": "Português", "save": "Guardar {x}"}))
    settings = load(Path("/dev/null"), {}, [f"channels.web.texts={json.dumps(str(tmp_path))}"])
    clock = ManualClock()
    store = MemoryStore()
    timeline, places = StoreTimeline(store, clock), (tmp_path / "media", store.blobs)
    with caplog.at_level(logging.WARNING, "gateway.app.web"):
        page = make_page(settings, *places, Addresses("127.0.0.1", 0, ()), lambda _: False, timeline, clock)
    assert page.adapter is not None
    mistake, missing = [record.getMessage() for record in caplog.records]
    assert mistake.startswith("the page's languages: pt.json: save: must contain no place in braces, not {x}")
    assert missing.startswith("the page's languages: pt.json: shown in English, because they are missing: ")
