"""The index of one owner's facts, made at each search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.memory.recall import RankedFact, terms_of_fact
from pipeline.memory.values import Fact


class DictionaryIndex:
    """A `FactIndex` over the live facts of `facts`, by their numbers."""

    def __init__(self, facts: Mapping[int, Fact]) -> None:
        self._documents = {
            number: RankedFact(
                number=number,
                terms=terms_of_fact(fact),
                session_id=fact.source_session_id,
                turn=fact.source_turn_index,
            )
            for number, fact in facts.items()
            if fact.is_live
        }
        self._having: dict[str, list[int]] = {}
        for number in sorted(self._documents, reverse=True):
            for term in dict.fromkeys(self._documents[number].terms):
                self._having.setdefault(term, []).append(number)

    def size(self) -> int:
        return len(self._documents)

    def frequency(self, term: str) -> int:
        return len(self._having.get(term, ()))

    def having(self, term: str, limit: int) -> Sequence[int]:
        return self._having.get(term, [])[:limit]

    def documents(self, numbers: Sequence[int]) -> Sequence[RankedFact]:
        return [self._documents[number] for number in numbers]

    def beside(self, found: Sequence[RankedFact]) -> Sequence[RankedFact]:
        turns = {(one.session_id, one.turn + step) for one in found for step in (-1, 0, 1)}
        return [one for one in self._documents.values() if (one.session_id, one.turn) in turns]
