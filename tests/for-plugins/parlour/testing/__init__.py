"""What the author of a plug-in needs for its tests. Published with Parlour, for tests alone.

Fakes of the gateway's parts, and a gateway around a channel. `parlour.testing.contract` has the tests that
every channel passes; it needs pytest and pytest-asyncio. docs/guides/add-a-channel.md explains both.
"""

from gateway.storage.memory import MemoryStore
from parlour.testing.channel_case import ContractCase, WatchedInbox, ask
from parlour.testing.fakes import MemoryInbox, MemoryTimeline, QuickClock, every_event
from parlour.testing.gateway import RunningGateway, running_gateway
from parlour.testing.platform import Call, FakePlatform, Fault, Faults, Person, Place, Shown
from parlour.testing.posting_case import PostingCase, running
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from voice.transcription.scripted_transcriber import ScriptedTranscriber

__all__ = [
    "Call",
    "ContractCase",
    "FakePlatform",
    "Fault",
    "Faults",
    "ManualClock",
    "MemoryInbox",
    "MemoryStore",
    "MemoryTimeline",
    "Person",
    "Place",
    "PostingCase",
    "QuickClock",
    "RunningGateway",
    "ScriptedAnswer",
    "ScriptedLlm",
    "ScriptedTranscriber",
    "Shown",
    "SystemClock",
    "WatchedInbox",
    "ask",
    "every_event",
    "running",
    "running_gateway",
]
