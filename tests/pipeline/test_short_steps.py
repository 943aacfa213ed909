"""Which agents write the records of several steps together.

Covers: pipeline/service.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph_book import installed_graphs
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.settings import PipelineSettings
from pipeline.service import Pipeline

_TRIAGE = Path(__file__).parents[2] / "examples" / "workflows" / "triage.workflow.json"


@pytest.mark.parametrize(("graph", "together"), [(str(_TRIAGE), True), ("conversation", False)])
def test_the_records_of_a_workflow_share_writes_and_those_of_a_conversation_do_not(
    graph: str, together: bool
) -> None:
    no_speech: Any = None
    pipeline = Pipeline(
        graph=installed_graphs().open(graph),
        llm=ScriptedLlm.echo(),
        speech_to_text=no_speech,
        settings=PipelineSettings(),
        clock=ManualClock(),
    )
    assert pipeline.has_short_steps is together
