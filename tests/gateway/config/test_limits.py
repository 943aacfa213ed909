"""How long prompts and answers may be, and who says so."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from gateway.app.llm import ModelClients, pipeline_settings
from gateway.config import load, model_limits
from gateway.config.explain import check_config
from gateway.runtime.crash_labels import LABELS
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ConfigurationError
from pipeline.llm import windows
from pipeline.llm.prices import model_table
from pipeline.llm.windows import window_of


@pytest.mark.parametrize("model", ["openai/gpt-4o", "gpt-4o"])
def test_a_hosted_model_has_the_window_and_the_answer_of_the_table(model: str) -> None:
    limits = model_limits(load(None, {}, [f"llm.model={model}"]))
    assert (limits.context_tokens, limits.max_tokens) == (128_000, 16_384)
    assert limits.words().count("LiteLLM's table") == 2


def test_a_model_whose_answer_could_fill_its_window_leaves_room_for_the_prompt() -> None:
    window = window_of("gpt-4")
    assert window is not None
    assert window.answer * 4 <= window.context


def test_the_table_is_read_once_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def read() -> dict[str, Any]:
        reads.append("table")
        return model_table()

    monkeypatch.setattr(windows, "model_table", read)
    window_of.cache_clear()
    settings = load(None, {}, ["llm.model=openai/gpt-4o"])
    assert model_limits(settings) == model_limits(settings)
    assert len(reads) == 1


def test_the_settings_win_and_are_named() -> None:
    limits = model_limits(load(None, {}, ["llm.model=gpt-4o", "llm.context_tokens=8000"]))
    assert (limits.context_tokens, limits.max_tokens) == (8_000, 2_000)
    assert "llm.context_tokens" in limits.words()
    limits = model_limits(load(None, {}, ["llm.model=gpt-4o", "llm.max_tokens=99"]))
    assert (limits.context_tokens, limits.max_tokens) == (128_000, 99)


def test_the_embedded_model_and_an_unknown_one_keep_small_limits() -> None:
    limits = model_limits(load(None, {}, []))
    assert (limits.context_tokens, limits.max_tokens) == (4_096, 512)
    limits = model_limits(load(None, {}, ["llm.model=openai/no-such-model"]))
    assert (limits.context_tokens, limits.max_tokens) == (4_096, 1_024)
    assert "does not know" in limits.words()


@pytest.mark.parametrize(
    ("overrides", "sees"),
    [
        (["llm.model=openai/gpt-4o"], True),
        (["llm.model=openai/gpt-4"], False),
        (["llm.model=openai/no-such-model"], False),
        (["llm.model=openai/no-such-model", "llm.vision=true"], True),
        (["llm.model=openai/gpt-4o", "llm.vision=false"], False),
        (["llm.model=openai/gpt-4o", "llm.context_tokens=8000", "llm.max_tokens=99"], True),
        ([], False),
    ],
)
def test_whether_a_model_sees_pictures_is_in_the_table_or_in_the_settings(
    overrides: list[str], *, sees: bool
) -> None:
    settings = load(None, {}, overrides)
    assert model_limits(settings).vision is sees
    assert ("does not see pictures" in model_limits(settings).words()) is not sees
    assert pipeline_settings(settings, ModelClients(settings, SystemClock()).main(settings)).vision is sees


def test_pictures_are_shown_only_if_the_cheaper_model_sees_them_as_well() -> None:
    overrides = ["llm.model=openai/gpt-4o", "budget.cheaper_model=openai/gpt-4", "budget.person_tokens=1000"]
    settings = load(None, {}, overrides)
    assert not pipeline_settings(settings, ModelClients(settings, SystemClock()).main(settings)).vision


def test_the_embedded_model_cannot_be_declared_to_see() -> None:
    with pytest.raises(ConfigurationError, match=r"llm\.vision: is true, but the embedded model cannot see"):
        load(None, {}, ["llm.vision=true"])


def test_what_the_model_is_sent_fits_the_cheaper_one_as_well() -> None:
    overrides = ["llm.model=openai/gpt-4o", "budget.cheaper_model=openai/gpt-4", "budget.person_tokens=1000"]
    settings = load(None, {}, overrides)
    found = pipeline_settings(settings, ModelClients(settings, SystemClock()).main(settings))
    assert found.context_tokens == model_limits(settings, "openai/gpt-4").context_tokens < 128_000


def test_check_config_says_the_limits_and_where_they_come_from() -> None:
    said: list[str] = []
    assert check_config(None, {}, ["llm.model=openai/gpt-4o"], said.append, labels=LABELS) == 0
    assert "window 128000 tokens (LiteLLM's table)" in "".join(said)


def test_limits_the_list_of_models_and_the_first_questions_load_no_model_library_and_no_http_client() -> None:
    code = (
        "import sys; from gateway.config import load, model_limits; "
        "import gateway.cli.models, gateway.cli.init.command, gateway.cli.plugins, gateway.config.explain; "
        "model_limits(load(None, {}, ['llm.model=openai/gpt-4o'])); "
        "sys.exit(repr(loaded) if (loaded := {'litellm', 'aiohttp'} & set(sys.modules)) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("model", "as_one"),
    [
        ("ollama_chat/llama3", "ollama/llama3"),
        ("openrouter/openai/gpt-4o", "gpt-4o"),
        ("litellm/openai/gpt-4o", "gpt-4o"),
    ],
)
def test_a_model_that_several_providers_have_is_found_by_the_name_that_the_table_has(
    model: str, as_one: str
) -> None:
    assert window_of(model) == window_of(as_one) is not None
    assert window_of("hosted_vllm/no-such-model") is None


def test_check_config_says_the_limits_of_each_agents_model_and_of_the_cheaper_one() -> None:
    said: list[str] = []
    overrides = [
        *("llm.model=openai/gpt-4o", "budget.cheaper_model=openai/gpt-4", "budget.person_tokens=1000"),
        *(
            "agents.same.temperature=1",
            "agents.wide.model=openai/gpt-4.1",
            "agents.narrow.context_tokens=2000",
        ),
    ]
    assert check_config(None, {}, overrides, said.append, labels=LABELS) == 0

    limits = [line for line in said if line.startswith("The limits of ")]
    assert [line.partition(": window ")[0] for line in limits] == [
        "The limits of the agent wide (openai/gpt-4.1)",
        "The limits of the agent narrow (openai/gpt-4o)",
        "The limits of the cheaper model (openai/gpt-4)",
    ]
    assert "window 2000 tokens (llm.context_tokens)" in limits[1]


def test_check_config_names_the_embedded_model_where_an_agent_uses_it() -> None:
    for overrides, shown in (
        (["llm.model=openai/gpt-4o"], 0),
        (["llm.model=openai/gpt-4o", "agents.own.model=local"], 1),
        ([], 1),
    ):
        said: list[str] = []
        assert (
            check_config(None, {}, overrides, said.append, labels=LABELS, embedded=lambda _: "the small one")
            == 0
        )
        assert said.count("The embedded model: the small one.\n") == shown
