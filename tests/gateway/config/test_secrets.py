"""References to secrets: read at each use, refused in words, never shown. Real files, real modes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.config import SecretRef, Secrets, SecretUnavailable, load
from gateway.config.secrets import SecretContext
from tests.gateway.config.support import problem_lines, write_config
from tests.support.tables import each

OVERRIDES = ["llm.model=openai/x", "llm.api_key=file:key"]


def secret_file(folder: Path, content: bytes = b"tiger\n", mode: int = 0o600) -> Path:
    path = folder / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def reference(folder: Path) -> SecretRef:
    return SecretRef.parse("file:key", SecretContext(folder=folder, environ={}))


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o440, 0o640])
def test_a_file_for_the_owner_and_its_group_is_read(tmp_path: Path, mode: int) -> None:
    secret_file(tmp_path, mode=mode)

    assert reference(tmp_path).resolve() == "tiger"


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o620, 0o602, 0o666])
def test_a_file_that_others_can_read_or_write_is_refused_with_the_command_to_run(
    tmp_path: Path, mode: int
) -> None:
    path = secret_file(tmp_path, mode=mode)
    config = write_config(tmp_path, "")

    assert problem_lines(config, {}, OVERRIDES) == [
        (
            f"llm.api_key: the file {path} can be read by everyone or written by others (mode {mode:o}) "
            f"(referred to in the option --set); run: chmod 600 {path}"
        )
    ]
    path.chmod(0o600)
    assert str(load(config, {}, OVERRIDES).llm.api_key) == "file:key"


def test_a_relative_file_starts_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    secret_file(folder, b"tiger-tiger-burning")

    settings = load(write_config(folder, '[channels.web]\ntoken = "file:key"\n'), {}, [])

    assert settings.channels.web.token is not None
    assert settings.channels.web.token.resolve() == "tiger-tiger-burning"
    assert settings.channels.web.token.path == folder / "key"


def test_a_rotated_file_takes_effect_at_the_next_use(tmp_path: Path) -> None:
    secret_file(tmp_path)
    secret = reference(tmp_path)
    assert secret.resolve() == "tiger"

    secret_file(tmp_path, b"lion\r\n")

    assert secret.resolve() == "lion"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"  \n", "is empty"),
        (b"tiger\nlion\n", "holds a line break or a control character"),
        (b"tiger\x00", "holds a line break or a control character"),
        (b"tiger\xff", "is not UTF-8 text"),
        (b"t" * 70_000, "is larger than 64 KiB"),
    ],
)
def test_a_file_without_a_usable_secret_is_refused_in_words(
    tmp_path: Path, content: bytes, what: str
) -> None:
    path = secret_file(tmp_path, content)

    with pytest.raises(SecretUnavailable) as caught:
        reference(tmp_path).resolve()

    assert str(caught.value).startswith(f"file:key: the file {path} {what}; ")
    assert "tiger" not in str(caught.value)
    assert "tiger" not in repr(caught.value.__context__)


def test_a_missing_file_a_folder_and_a_pipe_are_refused_without_waiting(tmp_path: Path) -> None:
    with pytest.raises(SecretUnavailable, match=r"cannot be read \(No such file or directory\)"):
        reference(tmp_path).resolve()
    (tmp_path / "key").mkdir()
    with pytest.raises(SecretUnavailable, match=r"cannot be read \(Is a directory\)|not a regular file"):
        reference(tmp_path).resolve()
    (tmp_path / "key").rmdir()
    os.mkfifo(tmp_path / "key", 0o600)
    with pytest.raises(SecretUnavailable, match="not a regular file; name a file"):
        reference(tmp_path).resolve()


@pytest.mark.parametrize(
    ("environ", "what"),
    [
        ({}, "the environment variable KEY is not set"),
        ({"KEY": ""}, "the environment variable KEY is empty"),
        ({"KEY": " \n"}, "the environment variable KEY is empty"),
        ({"KEY": "a\nb"}, "the environment variable KEY holds a line break or a control character"),
    ],
)
def test_a_variable_without_a_usable_secret_is_refused_in_words(environ: dict[str, str], what: str) -> None:
    with pytest.raises(SecretUnavailable) as caught:
        SecretRef.parse("env:KEY", SecretContext(environ=environ)).resolve()

    assert str(caught.value).startswith(f"env:KEY: {what}; ")


@each("text", ["tiger", "", "env:", "file:", "ENV:KEY", "env:a-b", "env:1", "file:a\nb", " env:K"])
def test_what_is_no_reference_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|does) not") as caught:
        SecretRef.parse(text)

    assert "tiger" not in str(caught.value)


def test_a_reference_shows_itself_and_not_its_value() -> None:
    secret = SecretRef.parse("env:KEY", SecretContext(environ={"KEY": "tiger"}))

    assert str(secret) == "env:KEY"
    assert repr(secret) == "SecretRef(scheme='env', target='KEY')"
    assert secret == SecretRef.parse("env:KEY")
    assert len({secret, SecretRef.parse("env:KEY")}) == 1
    assert "tiger" not in repr(secret.context)


def test_known_values_hold_every_secret_seen_longest_first(tmp_path: Path) -> None:
    secret_file(tmp_path)
    variable = SecretRef.parse("env:KEY", SecretContext(environ={"KEY": "a-long-value"}))
    absent = SecretRef.parse("env:ABSENT", SecretContext(environ={}))
    secrets = Secrets([reference(tmp_path), variable, absent])
    secrets.add("made-at-start")
    secrets.add("")

    assert secrets.known_values() == ("made-at-start", "a-long-value", "tiger")
    secret_file(tmp_path, b"lion")
    assert secrets.known_values() == ("made-at-start", "a-long-value", "tiger", "lion")
    assert repr(secrets) == "Secrets(3 references)"


def test_the_settings_name_their_references() -> None:
    settings = load(Path("/dev/null"), {"KEY": "tiger-tiger-burning"}, ["channels.web.token=env:KEY"])

    assert {path: str(secret) for path, secret in settings.secret_refs().items()} == {
        "channels.web.token": "env:KEY"
    }
    assert Secrets(settings.secret_refs().values()).known_values() == ("tiger-tiger-burning",)
