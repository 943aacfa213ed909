"""The settings of the security shield: [shield]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from gateway.config.agent import check_model
from gateway.config.secrets import SecretRef
from gateway.config.section import PathSetting, Section, setting
from gateway.config.value_checks import check_evaluator_base


class ShieldSettings(Section):
    """[shield]: what is decided about actions of tools."""

    policy: PathSetting | None = setting(
        None,
        "A TOML file with rules of your own, evaluated before the shipped ones; a rule of the same name "
        "replaces the shipped one. A changed file takes effect with the next action.",
        example="policy.toml",
    )
    flow: Literal["enforce", "audit"] = setting(
        "enforce",
        "Whether the rules about confidential data stop actions (enforce), or only note in the audit what "
        "they would stop (audit).",
    )
    approvals_per_hour: int = setting(
        10,
        "How often one person is asked in an hour whether a tool may be used; further actions are refused. "
        "0 sets no limit.",
        ge=0,
        le=1_000,
    )
    classifier: PathSetting | None = setting(
        None,
        "A folder with a classifier of injected instructions, model.onnx and tokenizer.json, which takes the "
        "place of the shipped linear model (docs/guides/injection.md).",
        example="models/injection",
    )
    classifier_threshold: float = setting(
        0.5, "The probability from which a text counts as an attack by shield.classifier.", ge=0.01, le=0.99
    )
    classifier_timeout_s: float = setting(
        5.0,
        "Seconds after which shield.classifier counts as not answering; then a person is asked.",
        ge=0.1,
        le=120,
    )
    evaluator: Annotated[str | None, AfterValidator(check_model)] = setting(
        None,
        "A second model that judges what the policy puts at tier 2, in place of a person "
        "(docs/guides/security.md). It must not be a model that answers people. The address and the key of "
        "[llm] are used for one of the same provider only. When absent: a person decides.",
        example="anthropic/claude-haiku-4-5",
        expected='"scripted:…" or a LiteLLM model name',
        max_length=2_000,
    )
    evaluator_api_base: Annotated[str | None, AfterValidator(check_evaluator_base)] = setting(
        None,
        "The address of the evaluator's API, when it is not the provider's own. The key of [llm] is not sent "
        "there.",
        example="http://127.0.0.1:11434",
        expected="an address that starts with http:// or https://",
    )
    evaluator_api_key: SecretRef | None = setting(
        None, "The key for the evaluator's API, by reference.", example="env:ANTHROPIC_API_KEY"
    )
    evaluator_timeout_s: float = setting(
        30.0, "Seconds after which a person is asked in place of the evaluator.", ge=1, le=120
    )
    evaluator_per_day: int = setting(
        100,
        "How often the evaluator is asked in a day of UTC, by everybody together; afterwards a person is "
        "asked. 0 sets no limit.",
        ge=0,
        le=1_000_000,
    )
