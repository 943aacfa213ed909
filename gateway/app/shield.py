"""Build the shield: its policy, its audit and what it stores about conversations."""

from __future__ import annotations

from gateway.app.components import Foundation
from gateway.config.shield import ShieldSettings
from gateway.runtime.crash_labels import CrashLabels
from gateway.shield.audit_trail import StoreAudit
from gateway.shield.evaluator_client import EvaluatorClient
from gateway.shield.onnx_classifier import load_classifier
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.llm.client import LlmClient
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.ports import Budgets
from pipeline.shield.evaluator import Evaluator
from pipeline.shield.flow import Taints
from pipeline.shield.injection.scanner import Classifier, InjectionScanner
from pipeline.shield.permissions import Permissions
from pipeline.shield.policy_book import PolicyBook
from pipeline.shield.ports import EvaluatorBudget
from pipeline.shield.shield import Shield


def gateways_shield(base: Foundation, budgets: Budgets) -> Shield:
    """The shield of a gateway with its evaluator, whose use counts in `budgets`. Raises ConfigurationError as
    `build_shield`."""
    settings, llm = base.settings.shield, base.models.evaluator()
    evaluator = None
    if llm is not None:
        calls = base.store.shield.evaluator_calls
        evaluator = build_evaluator(
            settings, llm, calls=calls, clock=base.clock, budgets=budgets, redactor=base.redactor
        )
    return build_shield(
        settings,
        store=base.store,
        clock=base.clock,
        crash_labels=base.crash_labels,
        evaluator=evaluator,
        shared=base.settings.cluster.shared,
    )


def build_shield(
    settings: ShieldSettings,
    *,
    store: Store,
    clock: Clock,
    crash_labels: CrashLabels,
    evaluator: Evaluator | None = None,
    shared: bool = False,
) -> Shield:
    """Build it; without an `evaluator` a person decides at tier 2. Raises ConfigurationError, which names
    every mistake of the policy, or what is wrong with the operator's classifier."""
    return Shield(
        policies=PolicyBook(settings.policy),
        audit=StoreAudit(store.shield.audit, clock, crash_labels),
        taints=Taints(store.shield.taints, shared=shared),
        permissions=Permissions(store.shield.permissions, clock),
        clock=clock,
        flow_mode=settings.flow,
        scanner=InjectionScanner(build_classifier(settings, clock)),
        evaluator=evaluator,
    )


def build_classifier(settings: ShieldSettings, clock: Clock) -> Classifier | None:
    """The classifier of `shield.classifier`; None for the shipped one. Raises ConfigurationError."""
    if settings.classifier is None:
        return None
    threshold, timeout_s = settings.classifier_threshold, settings.classifier_timeout_s
    try:
        return load_classifier(settings.classifier, threshold=threshold, timeout_s=timeout_s, clock=clock)
    except ConfigurationError as error:
        raise ConfigurationError(f"shield.classifier: {error}") from error


def build_evaluator(
    settings: ShieldSettings,
    llm: LlmClient,
    *,
    calls: EvaluatorBudget,
    clock: Clock,
    budgets: Budgets,
    redactor: Redactor,
) -> Evaluator:
    """Build the evaluator around the model `llm`."""
    timeout_s = settings.evaluator_timeout_s
    return Evaluator(
        model=EvaluatorClient(llm, budgets, timeout_s=timeout_s),
        budget=calls,
        clock=clock,
        timeout_s=timeout_s,
        per_day=settings.evaluator_per_day,
        redact=redactor.text,
    )
