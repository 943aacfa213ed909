"""The stage histograms measure the stages that they name, in the injected clock's seconds."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from gateway.channels.supervisor import ChannelStatus
from gateway.runtime.metrics import Telemetry
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import (
    ActionCompleted,
    LlmToken,
    NodeStarted,
    ResponseComplete,
    TranscriptReady,
    TurnStarted,
)
from tests.gateway.live_speech_harness import open_live_speech


def _samples(telemetry: Telemetry) -> dict[str, float]:
    families = text_string_to_metric_families(telemetry.exposition().decode())
    return {
        sample.name
        + "".join(f"/{value}" for key, value in sample.labels.items() if key != "le"): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


async def test_each_stage_of_a_typed_message_is_timed() -> None:
    clock = ManualClock(start=1000.0)
    telemetry = Telemetry(clock)
    telemetry.accepted("web", 0.25)
    await clock.advance(2)
    telemetry.turn_started(received_at=1000.0)
    stages = telemetry.stages(received_at=1000.0)
    ids = {"session_id": "s", "message_id": "m"}
    stages.note(TurnStarted(**ids))
    stages.note(NodeStarted(**ids, node="agent"))
    await clock.advance(3)
    for offset in range(2):
        stages.note(LlmToken(**ids, text="a", offset=offset))
        await clock.advance(1)
    stages.note(ResponseComplete(session_id="s", message_id="m", content="aa"))
    telemetry.turn_ended("answered")

    samples = _samples(telemetry)
    assert samples["parlour_receive_to_ack_seconds_sum"] == 0.25
    assert samples["parlour_queue_wait_seconds_sum"] == 2
    assert samples["parlour_first_token_seconds_sum"] == 3
    assert samples["parlour_first_visible_seconds_sum"] == 5
    assert samples["parlour_final_seconds_sum"] == 7
    for stage in ("first_token", "first_visible", "final"):
        assert samples[f"parlour_{stage}_seconds_count"] == 1
    assert samples["parlour_turns_total/answered"] == 1
    assert samples["parlour_turns_running"] == 0


async def test_a_transcript_is_the_first_thing_that_a_speaker_sees() -> None:
    clock = ManualClock(start=1000.0)
    telemetry = Telemetry(clock)
    stages = telemetry.stages(received_at=1000.0)
    with telemetry.hearing():
        assert _samples(telemetry)["parlour_notes_hearing"] == 1
        await clock.advance(4)
    transcript = TranscriptReady(session_id="s", message_id="m", text="hi", language="en", confidence=1.0)
    stages.note(transcript)
    samples = _samples(telemetry)
    assert samples["parlour_notes_hearing"] == 0
    assert samples["parlour_transcription_seconds_sum"] == 4
    assert samples["parlour_first_visible_seconds_sum"] == 4
    assert samples["parlour_first_token_seconds_count"] == 0


async def test_calls_of_tools_are_counted_by_their_outcome() -> None:
    telemetry = Telemetry(ManualClock())
    stages = telemetry.stages(received_at=0.0)
    for success in (True, False, True):
        done = ActionCompleted(session_id="s", message_id="m", tool_name="t", success=success, summary="")
        stages.note(done)
    samples = _samples(telemetry)
    assert samples["parlour_tool_calls_total/done"] == 2
    assert samples["parlour_tool_calls_total/failed"] == 1


async def test_open_microphones_are_counted_at_the_scrape() -> None:
    telemetry = Telemetry(ManualClock())
    assert _samples(telemetry)["parlour_microphones_open"] == 0
    async with open_live_speech() as harness:
        telemetry.watch_microphones(lambda: harness.service.open_microphones)
        await harness.open_stream()
        assert _samples(telemetry)["parlour_microphones_open"] == 1
    assert _samples(telemetry)["parlour_microphones_open"] == 0


async def test_a_wall_clock_that_jumps_back_gives_no_negative_times() -> None:
    clock = ManualClock(start=1000.0)
    telemetry = Telemetry(clock)
    clock.step_wall(-3600)
    telemetry.turn_started(received_at=1000.0)
    assert _samples(telemetry)["parlour_queue_wait_seconds_sum"] == 0


def test_the_channels_figures_are_those_of_the_moment_of_the_scrape() -> None:
    telemetry = Telemetry(ManualClock())
    statuses = [ChannelStatus(channel="slack", account="main", state="starting")]
    telemetry.watch_channels(lambda: statuses)
    samples = _samples(telemetry)
    assert samples["parlour_channel_up/main/slack"] == 0
    assert samples["parlour_channel_restarts_total/main/slack"] == 0
    assert "parlour_channel_last_received_seconds/main/slack" not in samples

    statuses[0] = ChannelStatus(
        channel="slack", account="main", state="up", received_ago_s=2.5, restarts=3, words="connected"
    )
    samples = _samples(telemetry)
    assert samples["parlour_channel_up/main/slack"] == 1
    assert samples["parlour_channel_restarts_total/main/slack"] == 3
    assert samples["parlour_channel_last_received_seconds/main/slack"] == 2.5
