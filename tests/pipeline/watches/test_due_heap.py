"""The heap of due times: what is due comes once, soonest first."""

from __future__ import annotations

from pipeline.watches.due_heap import DueHeap


def test_what_is_due_is_taken_once_and_soonest_first() -> None:
    heap = DueHeap()
    for key, due in (("c", 30.0), ("a", 10.0), ("b", 20.0)):
        heap.put(key, due)
    assert heap.take_due(9.9) == []
    assert heap.take_due(20.0) == ["a", "b"]
    assert heap.take_due(20.0) == []
    assert heap.next_due() == 30.0


def test_a_new_time_takes_the_place_of_the_earlier_one() -> None:
    heap = DueHeap()
    heap.put("a", 10.0)
    heap.put("a", 50.0)
    heap.put("b", 60.0)
    assert heap.next_due() == 50.0
    assert heap.take_due(49.0) == []
    heap.put("b", 5.0)
    assert heap.take_due(50.0) == ["b", "a"]
    assert heap.next_due() is None


def test_what_is_removed_is_not_due() -> None:
    heap = DueHeap()
    heap.put("a", 10.0)
    heap.remove("a")
    heap.remove("a")
    assert "a" not in heap
    assert heap.next_due() is None
    assert heap.take_due(99.0) == []


def test_times_that_are_changed_again_and_again_do_not_fill_the_memory() -> None:
    heap = DueHeap()
    for number in range(10_000):
        heap.put("a", float(number))
        heap.put("b", float(-number))
    assert len(heap) == 2
    assert len(heap._heap) < 30
    assert heap.take_due(10_000.0) == ["b", "a"]
