"""Whatever is written into a configuration: settings, or problems of one line each that repeat no secret.

Without deadlines: an example writes files, and how long that takes is not what is tested here.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config import ConfigurationProblems, Settings, check_config, load
from gateway.config.catalog import SETTINGS, toml_value
from gateway.runtime.crash_labels import LABELS

SECRET = "sk-tiger-burning-bright"

_keys = st.sampled_from(sorted({part for name in SETTINGS for part in name.split(".")})) | st.text(max_size=8)
_scalars = (
    st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.just(SECRET)
    | st.datetimes()
    | st.dates()
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)
_FILES = ("shield.classifier", "shield.policy", "tools.mcp_file")
"""Their problems name the file, as a path is no secret."""
_lines = st.tuples(st.sampled_from(sorted(SETTINGS)), _values)


def toml(value: object) -> str:
    """Any value as inline TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_value(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if isinstance(value, bool | str):
        return toml_value(value)
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def outcome(text: bytes, environ: dict[str, str], overrides: list[str]) -> Settings | ConfigurationProblems:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parlour.toml"
        path.write_bytes(text)
        try:
            result: Settings | ConfigurationProblems = load(path, environ, overrides)
        except ConfigurationProblems as error:
            result = error
        written: list[str] = []
        code = check_config(path, environ, overrides, written.append, labels=LABELS)
    assert code == (0 if isinstance(result, Settings) else 2)
    if code == 2:
        assert all(line.count("\n") == 1 and line[:-1].isprintable() for line in written)
        assert SECRET not in "".join(line for line in written if not line.startswith(_FILES))
    return result


@settings(deadline=None)
@given(st.lists(_lines, max_size=4, unique_by=lambda line: line[0]))
def test_any_toml_value_for_any_setting_is_taken_or_refused_in_words(lines: list[tuple[str, object]]) -> None:
    text = "\n".join(f"{name} = {toml(value)}" for name, value in lines)

    outcome(text.encode("utf-8", "surrogatepass"), {}, [])


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_as_the_file_are_taken_or_refused_in_words(content: bytes) -> None:
    outcome(content, {}, [])


@settings(deadline=None)
@given(st.sampled_from(sorted(SETTINGS)), st.text(max_size=40), st.text(max_size=40))
def test_any_text_in_the_overlays_is_taken_or_refused_in_words(name: str, text: str, override: str) -> None:
    variable = f"PARLOUR__{name.replace('.', '__').upper()}"

    outcome(b"", {variable: text, f"PARLOUR__{text}": override}, [override, f"{name}={text}"])


@settings(deadline=None)
@given(st.sampled_from(["llm.api_key", "channels.web.token"]), st.sampled_from(["{}", "[{}]", "{{a = {}}}"]))
def test_a_secret_written_literally_is_refused_and_never_repeated(name: str, form: str) -> None:
    value = form.format(toml_value(SECRET))

    result = outcome(f'llm.model = "openai/x"\n{name} = {value}'.encode(), {}, [])
    overlay = outcome(b"", {}, ["llm.model=openai/x", f"{name}={value}"])

    assert isinstance(result, ConfigurationProblems)
    assert isinstance(overlay, ConfigurationProblems)
    assert [problem.path for problem in result.problems] == [name]
    assert SECRET not in str(result) + repr(result) + str(overlay)
