"""Build the crisis gate of an agent."""

from __future__ import annotations

from functools import partial

from gateway.app.companion import is_companion
from gateway.app.components import Foundation
from gateway.app.llm import ModelClients
from gateway.config import DEFAULT_AGENT, Settings, agent_settings, classifier_settings
from gateway.safety.classifier_client import ClassifierClient
from gateway.safety.notices import notice_target
from pipeline.domain.clock import Clock
from pipeline.memory.local_embedder import is_installed
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.ports import Budgets
from pipeline.safety.classifier import CrisisClassifier
from pipeline.safety.crisis_gate import CrisisGate
from pipeline.safety.danger_model import shipped_model
from pipeline.safety.ladder import assess
from pipeline.safety.resources import ResourceBook, read_resources, shipped_resources
from pipeline.safety.vector_judge import VectorJudge


def build_crisis_gate(
    settings: Settings, classifier: CrisisClassifier | None = None, vectors: VectorJudge | None = None
) -> CrisisGate | None:
    """The gate of the agent with these settings; None if the agent is exempt. Raises ConfigurationError for a
    bad file of resources, and BadCrisisWeights for a damaged model."""
    if settings.safety.gate == "off":
        return None
    shipped_model()
    country, language = settings.safety.country or "", settings.agent.language or ""
    # People come to a companion with what troubles them; elsewhere a false alarm is in the way more often.
    companion = is_companion(settings)
    return CrisisGate(
        _resources(settings),
        country=country,
        language=language,
        assess=assess if companion else partial(assess, only_named=True),
        vectors=vectors if companion else None,
        classifier=classifier,
    )


def agents_crisis_gate(settings: Settings, base: Foundation, budgets: Budgets) -> CrisisGate | None:
    """The gate of an agent of the gateway, with vectors and a classifier, whose use counts in `budgets`."""
    classifier = build_classifier(settings, base.models, base.clock, budgets, base.redactor)
    if classifier is not None:
        spawn = partial(base.tasks.background.spawn, name="failed crisis classifier")
        classifier.failed = lambda level: spawn(base.crises.count_failure(level))
    return build_crisis_gate(settings, classifier, base.crisis_vectors)


def build_classifier(
    settings: Settings, models: ModelClients, clock: Clock, budgets: Budgets, redactor: Redactor
) -> CrisisClassifier | None:
    """The crisis classifier of the agent with these settings; None if it has none."""
    llm, timeout_s = models.classifier(settings), settings.safety.classifier_timeout_s
    if llm is None:
        return None
    model = ClassifierClient(llm, budgets, timeout_s=timeout_s)
    return CrisisClassifier(model=model, clock=clock, timeout_s=timeout_s, redact=redactor.text)


def exempt_agents(settings: Settings) -> tuple[str, ...]:
    """The names of the agents that the configuration exempts from the crisis gate."""
    names = (DEFAULT_AGENT, *settings.agents)
    return tuple(name for name in names if agent_settings(settings, name).safety.gate == "off")


def crisis_gate_words(settings: Settings) -> str:
    """One line for the operator: which agents have the gate, and of which date the numbers are."""
    exempt = exempt_agents(settings)
    before = f"not before: {', '.join(exempt)}" if exempt else "before every agent"
    notice = notice_target(settings)
    notices = "no notices of crises (safety.notice)" if notice is None else f"notices go to {notice.thread}"
    as_of = _resources(settings).as_of
    beside = f"{_classifier_words(settings)}; {_vectors_words(settings)}"
    return f"{before}; {beside}; {notices}; numbers of help as of {as_of}"


def _classifier_words(settings: Settings) -> str:
    """Which agents have a classifier beside the rules."""
    if settings.safety.classifier is None:
        return "rules alone judge (safety.classifier is not set)"
    names = [name for name in (DEFAULT_AGENT, *settings.agents) if name not in exempt_agents(settings)]
    without = [name for name in names if classifier_settings(agent_settings(settings, name)) is None]
    words = f"the classifier is {settings.safety.classifier}"
    return f"{words}, but none for the embedded model of {', '.join(without)}" if without else words


def _vectors_words(settings: Settings) -> str:
    """Whose messages vectors judge."""
    if settings.safety.vectors == "none":
        return "no vectors (safety.vectors)" + ("" if is_installed() else ", `parlour[memory]` has them")
    exempt = exempt_agents(settings)
    every = [name for name in (DEFAULT_AGENT, *settings.agents) if name not in exempt]
    names = [name for name in every if is_companion(agent_settings(settings, name))]
    return (
        f"vectors before {', '.join(names)}" if names else "vectors before none, as no agent is a companion"
    )


def _resources(settings: Settings) -> ResourceBook:
    own = settings.safety.resources
    return shipped_resources() if own is None else shipped_resources().with_own(read_resources(own))
