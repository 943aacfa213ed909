"""The settings of the crisis classifier and of the operator's notices, and what is refused.

Covers: gateway/config/safety_rules.py, gateway/config/safety.py.
"""

from __future__ import annotations

from gateway.config import classifier_settings, load
from gateway.safety.notices import notice_target
from tests.gateway.config.support import problem_lines
from tests.support.tables import each

_TOKEN = "123456:" + "A" * 35
_TELEGRAM = "channels.telegram.token=env:TOKEN"


@each(
    "overrides, line",
    [
        (["safety.classifier=local"], "safety.classifier: is the embedded model, which is too small"),
        (["safety.classifier=a b"], "safety.classifier: is not the name of a model"),
        (
            ["safety.classifier=openai_compatible/b"],
            "safety.classifier_api_base: is missing, as safety.classifier names no provider",
        ),
        (
            ["safety.classifier_api_base=http://127.0.0.1:1"],
            "safety.classifier_api_base: has no effect, as safety.classifier is not set",
        ),
        (
            ["safety.classifier=agent", "safety.classifier_api_base=http://127.0.0.1:1"],
            'safety.classifier_api_base: has no effect, as safety.classifier is "agent"',
        ),
        (["safety.classifier_timeout_s=0"], "safety.classifier_timeout_s: expected a number from 1 to 60"),
        (["safety.notice.channel=telegram"], "safety.notice.chat: is missing, as safety.notice.channel is"),
        (['safety.notice.chat="1"'], "safety.notice.channel: is missing, as safety.notice.chat is set"),
        (
            ["safety.notice.channel=slack", 'safety.notice.chat="1"'],
            "safety.notice.channel: 'slack' is no channel that is on and can post",
        ),
        (
            ["safety.notice.channel=telegram", "safety.notice.account=b", 'safety.notice.chat="1"'],
            "safety.notice.account: 'b' is no account of telegram that is on",
        ),
    ],
)
def test_each_mistake_is_named_with_its_setting(overrides: list[str], line: str) -> None:
    (found,) = problem_lines(None, {"TOKEN": _TOKEN}, [_TELEGRAM, *overrides])
    assert found.startswith(line)


def test_the_key_of_the_answering_model_goes_to_no_other_provider() -> None:
    given = ["llm.model=openai/a", "llm.api_base=http://127.0.0.1:1", "llm.api_key=env:A"]
    found = classifier_settings(load(None, {"A": "lion"}, [*given, "safety.classifier=anthropic/b"]))
    assert found is not None
    assert (found.llm.model, found.llm.api_base, found.llm.api_key) == ("anthropic/b", None, None)


def test_the_agents_own_model_judges_unless_it_is_the_embedded_one_or_the_agent_is_exempt() -> None:
    own = load(None, {}, ["llm.model=openai/a", "safety.classifier=agent"])
    found = classifier_settings(own)
    assert found is not None
    assert found.llm.model == "openai/a"
    assert classifier_settings(load(None, {}, ["llm.model=local", "safety.classifier=agent"])) is None
    assert classifier_settings(load(None, {}, ["llm.model=openai/a"])) is None
    off = ["llm.model=openai/a", "safety.classifier=agent", "safety.gate=off"]
    assert classifier_settings(load(None, {}, off)) is None


def test_notices_go_to_the_channels_only_account_unless_one_is_named() -> None:
    settings = load(
        None, {"TOKEN": _TOKEN}, [_TELEGRAM, "safety.notice.channel=telegram", 'safety.notice.chat="5"']
    )
    found = notice_target(settings)
    assert found is not None
    assert found.thread.encode() == f"telegram:{settings.channels.telegram.account}:5"
    assert notice_target(load(None, {}, [])) is None
