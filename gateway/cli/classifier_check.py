"""Check the crisis classifier for `parlour doctor` by one real call about a harmless message."""

from __future__ import annotations

from gateway.app.llm import ModelClients
from gateway.app.safety import build_classifier
from gateway.cli.findings import Finding
from gateway.config import DEFAULT_AGENT, Settings, agent_settings, classifier_settings
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ParlourError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.null_services import NullBudgets
from pipeline.safety.classifier import Asked

_NAME = "crisis classifier"
_SAMPLE = "Which bread goes well with soup?"
_ASKED = Asked(
    session_id="",
    message_id="",
    thread=ThreadKey(channel="console", account="local", chat="doctor"),
    author=Author(id="doctor"),
)


def classified_agent(settings: Settings) -> Settings | None:
    """The settings of the first agent that has a classifier; None if none has one."""
    every = (agent_settings(settings, name) for name in (DEFAULT_AGENT, *settings.agents))
    return next((one for one in every if classifier_settings(one) is not None), None)


async def classifier_finding(settings: Settings, clock: Clock) -> Finding:
    """Whether the classifier of the agent with these settings answers in the form that counts."""
    clients = ModelClients(settings, clock)
    try:
        classifier = build_classifier(settings, clients, clock, NullBudgets(), Redactor())
        if classifier is None:
            return Finding(name=_NAME, good=True, words="none")
        started = clock.monotonic()
        said = await classifier.assess(_SAMPLE, (), _ASKED)
    except ParlourError as error:
        return Finding(name=_NAME, good=False, words=str(error))
    finally:
        await clients.close()
    if said is None or said.llm_failed:
        words = "gave no answer in its form and time; until it does, the rules judge alone"
        return Finding(name=_NAME, good=False, words=words)
    seconds = clock.monotonic() - started
    words = f"asked about soup, it said level {said.level} after {seconds:.1f} s; each message waits so long"
    return Finding(name=_NAME, good=said.level == 0, words=words)
