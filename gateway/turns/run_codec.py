"""Encode a graph run as rows of a thread's log, and decode it.

Each record of the engine is one row of kind `step`, without default values. Records that were made in one
turn of the event loop share a row. The records that end a run have no separate row: the record that shows
the outcome embeds them under `steps`. This module does not interpret the records; the engine does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from gateway.storage.log_records import OutcomeRecord, StepRecord, content_of
from gateway.storage.ports import Record
from pipeline.graph.run.records import TRAIL, RawRecord, has_ended

TOGETHER = "records"
"""The key of several records that share one row."""
DROPPED: Final[Mapping[str, Any]] = {"run": ""}
"""The body of a row after which the message's earlier runs do not count: another one begins."""
CUT_OFF: Final[Mapping[str, Any]] = {"do": "end", "status": "cancelled", "reason": "aborted"}
"""The record that ends a run whose turn was stopped or has failed: no answer continues it."""
_HEAD = ("run", "graph", "entry", "given")
_NOT_EMBEDDED = ("do", "update", "phase", "seconds")
"""Fields that an ended run no longer needs: the same row holds the answer and its time."""
_TO_THE_END = ["end"]
_COMPLETED = {"do": "end", "status": "completed", "reason": "completed"}


def to_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a record's row. A body without `do` is a step; a head is flattened."""
    body = dict(record)
    if body["do"] == "step":
        del body["do"]
    return body if body.pop("head", None) is None else body | _flat_head(record)


def to_rows(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of the one row for records that were made together: the body of a single record, or a list
    with the head first."""
    if len(records) == 1:
        return to_row(records[0])
    first, *others = [to_row(record) for record in records]
    keys = [key for key in _HEAD if key in first] if isinstance(first.get("run"), str) else []
    head = {key: first.pop(key) for key in keys}
    return {**head, TOGETHER: [first, *others]}


def to_embedded(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records that end a run, as another record's body embeds them. Their state updates are left out,
    since an ended run is never resumed."""
    return [_embedded(record) for record in records if record != _COMPLETED]


def from_row(body: Mapping[str, Any]) -> RawRecord:
    """The record in a row's body; None for a body that `to_row` did not write, as in earlier releases."""
    if not body or "next" in body:
        return None
    record = {"do": "step", **body}
    if isinstance(body.get("run"), str):
        name, _, signature = str(record.pop("graph", "")).rpartition("/")
        head = {"run": record.pop("run"), "graph": name, "signature": signature}
        record["head"] = head | {
            "entry": record.pop("entry", ""),
            "inputs": record.pop("given", {}),
        }
    return record


def from_rows(body: Mapping[str, Any]) -> list[RawRecord]:
    """The records in a body that `to_rows` wrote; None for each that cannot be read."""
    if TOGETHER not in body:
        return [from_row(body)]
    together = body[TOGETHER]
    if not isinstance(together, list) or not together:
        return [None]
    head = {key: body[key] for key in _HEAD if key in body}
    # The type of decoded rows first: `isinstance` is slow for an abstract class.
    rows = [row if type(row) is dict or isinstance(row, Mapping) else {} for row in together]
    return [from_row({**rows[0], **head}), *map(from_row, rows[1:])]


def newest_run(rows: Sequence[Record]) -> tuple[RawRecord, ...]:
    """The records of the newest run among the `step` rows of one message; empty if it was dropped."""
    steps = [content for row in rows if isinstance(content := content_of(row), StepRecord)]
    begins = [at for at, step in enumerate(steps) if step.begins_run]
    newest = steps[begins[-1] if begins else 0 :]
    if newest and newest[0].row == DROPPED:
        return ()
    return tuple(record for step in newest for record in from_rows(step.row))


def runs_of(rows: Iterable[Record]) -> dict[str, list[RawRecord]]:
    """Every recorded run among the rows of a thread, by its id: for display, not for resuming.

    `rows` are records of all kinds, oldest first.
    """
    runs: dict[str, list[RawRecord]] = {}
    current: dict[str, str] = {}
    for row in rows:
        content = content_of(row)
        if isinstance(content, StepRecord):
            records = from_rows(content.row)
            if records[0] is not None and "head" in records[0]:
                current[row.message_id] = records[0]["head"]["run"]
            runs.setdefault(current.get(row.message_id, ""), []).extend(records)
        elif isinstance(content, OutcomeRecord) and content.steps is None:
            _cut_off(row, runs.get(current.get(row.message_id, ""), []))
        elif isinstance(content, OutcomeRecord) and content.steps is not None:
            steps = _ended([_from_embedded(plain) for plain in content.steps])
            run_id = current.get(row.message_id) or _run_of(steps)
            runs.setdefault(run_id, []).extend(steps)
    runs.pop("", None)
    return runs


def _cut_off(row: Record, records: list[RawRecord]) -> None:
    """Add to the records of a run that nothing has ended that its message ended with an error: the run was
    stopped, or its time was over, and it is never resumed."""
    if row.kind == "error" and records and not has_ended(records):
        records.append({"do": "cancel", "kept": {}})


def _flat_head(record: Mapping[str, Any]) -> dict[str, Any]:
    head = record["head"]
    flat = {"run": head["run"], "graph": f"{head['graph']}/{head['signature']}"}
    return flat | {
        key: value for key, value in (("entry", head["entry"]), ("given", head["inputs"])) if value
    }


def _embedded(record: Mapping[str, Any]) -> dict[str, Any]:
    if record["do"] != "step":
        return to_row(record)
    body = {key: value for key, value in to_row(record).items() if key not in _NOT_EMBEDDED} | _used(record)
    if (trail := record.get("update", {}).get(TRAIL)) is not None:
        body["update"] = {TRAIL: trail}
    targets = list(body.pop("to", ()))
    return body if targets == _TO_THE_END else {**body, "to": targets}


def _used(record: Mapping[str, Any]) -> dict[str, Any]:
    """The prompt and answer tokens of a model call, for `graph trace`; the rest of the update is dropped."""
    agent = record.get("update", {}).get("agent", {})
    tokens = [agent.get("prompt_tokens", 0), agent.get("completion_tokens", 0)]
    return {"used": tokens} if any(tokens) else {}


def _from_embedded(body: Mapping[str, Any]) -> RawRecord:
    record = from_row(body)
    if record is None or record["do"] != "step":
        return record
    return {**record, "to": body.get("to", _TO_THE_END)}


def _ended(records: list[RawRecord]) -> list[RawRecord]:
    said = any(record is not None and record["do"] == "end" for record in records)
    return records if said else [*records, dict(_COMPLETED)]


def _run_of(steps: Sequence[RawRecord]) -> str:
    first = steps[0] if steps else None
    return str(first["head"]["run"]) if first is not None and "head" in first else ""
