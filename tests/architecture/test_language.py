"""Words that the project no longer uses become fewer, and commit subjects have one form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.commit_subject import main, problem
from tools.language import AREAS, WORDS, Counts, ceilings, counts, counts_in


@pytest.fixture(scope="module")
def counted() -> Counts:
    return counts()


@pytest.mark.parametrize("area", AREAS)
def test_a_word_that_goes_does_not_come_back(counted: Counts, area: str) -> None:
    now, allowed = counted[area], ceilings()[area]
    risen = {word: (count, allowed[word]) for word, count in now.items() if count > allowed[word]}
    assert risen == {}, "say it with the glossary's terms"
    assert now == allowed, "fewer than before: run `python -m tools.language --write`"


def test_every_word_has_a_ceiling() -> None:
    assert {area: set(words) for area, words in ceilings().items()} == {area: set(WORDS) for area in AREAS}


def test_each_form_of_a_word_is_counted_also_in_identifiers_and_twice_in_a_line() -> None:
    # With a mark in each word, so that this file is not counted.
    text = "de~sks la~ne_de~sk MyDe~sk de~sktop helpde~sk DE~SK\nand do~ors she~lves\nto~ld To~ld\n"
    text += "It went o~n, goO~n, go\non; his o~wn: OF_ITS_O~WN ast.wa~lk wa~lking\nea~rs nobo~dy"
    text += "\nas it is (se~ed 3). Se~ed 0: all; se~ed 1's rules; se~ed_2 --se~ed 4, se~ed 42"
    found = {"de~sk": 4, "do~or": 1, "she~lf": 1, "to~ld": 2, "goes o~n": 2, "of its o~wn": 1}
    found |= {"la~ne": 1, "wa~lk": 1, "ea~rs": 1, "nobo~dy": 1, "seed N": 4}
    expected = dict.fromkeys(WORDS, 0) | {word.replace("~", ""): count for word, count in found.items()}
    assert counts_in(text.replace("~", "")) == expected


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("commands: answer unknown commands with a hint to /help", ""),
        ("gateway/delivery: retry the edit", ""),
        ('Revert "commands: answer"', ""),
        ("Answer unknown commands", "write `area"),
        ("commands: the answer is known", "imperative"),
        ("commands: answered unknown commands", "imperative"),
        ("commands:", "write `area"),
        ("commands: answer " + "x" * 60, "77 characters"),
    ],
)
def test_a_commit_subject_has_one_form(subject: str, reason: str) -> None:
    assert problem(subject).startswith(reason) if reason != "imperative" else reason in problem(subject)
    assert bool(problem(subject)) == bool(reason)


def test_the_hook_reads_the_first_line_and_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("tests: add a case\n\nThe body is free.\n")
    assert main([str(message)]) == 0
    message.write_text("Added a case\n")
    assert main([str(message)]) == 1
    assert "area: imperative verb" in capsys.readouterr().err
