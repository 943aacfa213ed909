"""The tokens of the API are compared as hashes, and a rotated one works at once.

Covers: adapters/api/tokens.py, adapters/api/run_ids.py.
"""

from __future__ import annotations

from adapters.api.run_ids import new_run_id, run_id_of, thread_of, workflow_of
from adapters.api.settings import Token
from adapters.api.tokens import TokenBook
from pipeline.domain.errors import ConfigurationError


def _token(name: str, values: dict[str, str]) -> Token:
    def read() -> str:
        if name not in values:
            raise ConfigurationError("the file is missing")
        return values[name]

    return Token(name=name, secret=read, scopes=frozenset({"run"}), workflows=frozenset({"*"}))


def test_each_token_finds_its_program_and_no_other_text_finds_one() -> None:
    values = {"a": "a" * 24, "b": "b" * 24}
    book = TokenBook({name: _token(name, values) for name in values})
    assert [getattr(book.holder(value * 24), "name", None) for value in "abc"] == ["a", "b", None]
    for wrong in ("", "a", "a" * 23, "a" * 25, "a" * 501, "\ud800" * 24, " " + "a" * 24):
        assert book.holder(wrong) is None
    assert values["a"] not in repr(vars(book))


def test_a_rotated_token_counts_at_once_and_one_that_is_gone_does_not() -> None:
    values = {"a": "a" * 24, "b": "b" * 24}
    book = TokenBook({name: _token(name, values) for name in values})
    assert book.holder("a" * 24) is not None
    values["a"] = "c" * 24
    del values["b"]
    assert [book.holder(value * 24) is not None for value in "abc"] == [False, False, True]


def test_a_runs_id_names_its_workflow_and_depends_on_every_part() -> None:
    assert workflow_of(new_run_id("my-flow_2")) == "my-flow_2"
    assert new_run_id("a") != new_run_id("a")
    ids = {run_id_of("a", "b", "c"), run_id_of("a", "bc", ""), run_id_of("ab", "c"), run_id_of("a", "", "bc")}
    assert len(ids) == 4
    assert run_id_of("a", "b") == run_id_of("a", "b")
    for other in ("", "a", "a.", ".0" * 12, "A." + "0" * 24, "a." + "0" * 23, "a." + "0" * 24 + "\n"):
        assert workflow_of(other) == ""
    thread = thread_of("ci", new_run_id("triage"))
    assert type(thread).decode(thread.encode()) == thread
