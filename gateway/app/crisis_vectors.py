"""Build the vectors of the crisis gate: the embedding model and the judge that uses it."""

from __future__ import annotations

from gateway.config import Settings
from pipeline.domain.clock import Clock
from pipeline.memory.local_embedder import TIMEOUT_S, LocalEmbedder
from pipeline.safety.vector_head import LAYERS, shipped_head
from pipeline.safety.vector_judge import SAMPLE, VectorJudge


def build_vector_judge(settings: Settings, clock: Clock) -> VectorJudge | None:
    """The judge for all agents of the gateway; None where vectors are off. Starts nothing. Raises
    BadCrisisWeights for a damaged file."""
    return None if settings.safety.vectors == "none" else VectorJudge(crisis_embedder(clock), clock)


async def vectors_state(settings: Settings, clock: Clock) -> tuple[bool, str] | None:
    """Whether the vectors of the crisis gate can be used, and in words how fast; None where they are off.
    Embeds one sentence."""
    if settings.safety.vectors == "none":
        return None
    embedder = crisis_embedder(clock)
    started = clock.monotonic()
    try:
        await embedder.question(SAMPLE)
    except Exception as error:  # noqa: BLE001 - a finding, whatever it is
        return False, f"{error}; until it works, the rules judge alone"
    finally:
        await embedder.close()
    seconds = clock.monotonic() - started
    return True, f"{embedder.model} answered after {seconds:.1f} s with the start of its process"


def crisis_embedder(clock: Clock, timeout_s: float = TIMEOUT_S) -> LocalEmbedder:
    """The encoder that the head was trained with. `timeout_s`: for one text, with the start."""
    return LocalEmbedder(clock, layers=LAYERS, model=shipped_head().model, timeout_s=timeout_s)
