"""The layers: which file is read, which value wins, how a text becomes a value."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.config import SecretRef, Settings, environment, load, load_with_sources
from tests.gateway.config.support import write_config


def test_without_anything_given_the_defaults_hold(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        settings = load(None, {}, [])

    assert settings == Settings()
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8765)
    assert (settings.llm.model, settings.llm.timeout_s, settings.llm.max_tokens) == ("local", 0, None)
    assert (settings.voice.max_bytes, settings.voice.queue_limit) == (20 * 1024 * 1024, 16)
    assert (settings.turn.timeout_s, settings.turn.lease_s) == (180, 30)
    assert settings.channels.web.enabled
    assert not settings.channels.console.enabled


def test_each_layer_wins_over_the_one_before(tmp_path: Path) -> None:
    path = write_config(tmp_path, "[server]\nport = 1\n")
    environ = {"PARLOUR__SERVER__PORT": "2"}

    assert load(path, {}, []).server.port == 1
    assert load(path, environ, []).server.port == 2
    assert load(path, environ, ["server.port=3"]).server.port == 3
    assert load(path, environ, ["server.port=3", "server.port=4"]).server.port == 4


def test_the_layers_mix_setting_by_setting_and_each_source_is_known(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[llm]\nmodel = "openai/x"\nretries = 1\n')

    loaded = load_with_sources(path, {"PARLOUR__LLM__RETRIES": "5"}, ["llm.local.threads=2"])

    assert (loaded.settings.llm.model, loaded.settings.llm.retries) == ("openai/x", 5)
    assert loaded.settings.llm.local.threads == 2
    assert {name: loaded.sources[name].label() for name in ("llm.model", "llm.retries")} == {
        "llm.model": f"file {path}",
        "llm.retries": "environment PARLOUR__LLM__RETRIES",
    }
    assert loaded.sources["llm.local.threads"].label() == "command line --set"
    assert loaded.sources["bot.name"].label() == "default"
    assert loaded.file == path


def test_the_command_line_names_the_file_before_the_variable_and_that_before_the_folder(
    tmp_path: Path,
) -> None:
    here = write_config(tmp_path, "[server]\nport = 1\n")
    for name, port in (("variable", 2), ("option", 3)):
        (tmp_path / name).mkdir()
        write_config(tmp_path / name, f"[server]\nport = {port}\n")
    environ = {"PARLOUR_CONFIG": str(tmp_path / "variable" / "parlour.toml")}

    with contextlib.chdir(tmp_path):
        assert load(None, {}, []).server.port == 1
        assert load(None, {"PARLOUR_CONFIG": ""}, []).server.port == 1
        assert load(None, environ, []).server.port == 2
        assert load(tmp_path / "option" / "parlour.toml", environ, []).server.port == 3
    assert load(here, environ, []).server.port == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ada", "Ada"),
        ('"Ada"', "Ada"),
        ("1984", "1984"),
        ("true", "true"),
        ("Ada # the first", "Ada # the first"),
        ("1\nport = 2", None),
        ("x = y", "x = y"),
        ("[" * 5_000, None),
    ],
)
def test_a_setting_that_holds_text_takes_the_overlay_as_it_is(text: str, name: str | None) -> None:
    if name is None:
        prompt = load(Path("/dev/null"), {"PARLOUR__BOT__SYSTEM_PROMPT": text}, []).bot.system_prompt
        assert prompt == text
    else:
        assert load(Path("/dev/null"), {"PARLOUR__BOT__NAME": text}, []).bot.name == name


def test_an_overlay_is_read_as_toml_where_the_setting_is_no_text() -> None:
    settings = load(
        Path("/dev/null"),
        {
            "PARLOUR__SERVER__PUBLIC_ORIGINS": '["https://bot.example.org", "http://10.0.0.7:8080"]',
            "PARLOUR__VOICE__ENABLED": "false",
            "PARLOUR__LLM__TEMPERATURE": "1",
            "PARLOUR__TURN": "{lease_s = 12.5, max_attempts = 7}",
            "PARLOUR_UNRELATED": "left alone",
        },
        ["channels.web.enabled=false"],
    )

    assert settings.server.public_origins == ("https://bot.example.org", "http://10.0.0.7:8080")
    assert not settings.voice.enabled
    assert settings.llm.temperature == 1
    assert (settings.turn.lease_s, settings.turn.max_attempts) == (12.5, 7)
    assert not settings.channels.web.enabled


def test_settings_cannot_be_changed() -> None:
    settings = Settings()

    with pytest.raises(ValidationError, match="frozen"):
        settings.server.port = 1


def test_paths_that_are_absent_come_from_the_folders() -> None:
    settings = load(Path("/dev/null"), {}, ["models.dir=/srv/models", "data.dir=/srv/data"])

    assert settings.models_path == Path("/srv/models")
    assert settings.voice_model_path == Path("/srv/models/whisper-base")
    assert settings.web_token_path == Path("/srv/data/web-token")
    given = load(Path("/dev/null"), {}, ["voice.model_path=/w"])
    assert given.voice_model_path == Path("/w")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_a_loopback_host_needs_no_public_origin(host: str) -> None:
    assert load(Path("/dev/null"), {}, [f"server.host={host}"]).server.host == host


def test_another_host_is_fine_with_an_origin_or_without_the_web_channel() -> None:
    origins = 'server.public_origins=["https://bot.example.org"]'

    assert load(Path("/dev/null"), {}, ["server.host=0.0.0.0", origins]).server.host == "0.0.0.0"
    assert load(Path("/dev/null"), {}, ["server.host=::", "channels.web.enabled=false"]).server.host == "::"


def test_the_settings_keep_the_reference_and_not_the_secret() -> None:
    settings = load(
        Path("/dev/null"), {"KEY": "tiger-in-the-bush"}, ["llm.model=openai/x", "llm.api_key=env:KEY"]
    )

    assert isinstance(settings.llm.api_key, SecretRef)
    assert settings.model_dump(mode="json")["llm"]["api_key"] == "env:KEY"
    for text in (repr(settings), str(settings), settings.model_dump_json(), repr(settings.llm.api_key)):
        assert "tiger" not in text


def test_the_environment_is_read_only() -> None:
    assert "PATH" in environment()
    with pytest.raises(TypeError):
        environment()["PATH"] = "x"  # type: ignore[index]  # the assignment is what is tested
