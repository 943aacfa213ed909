"""What the engine offers a running node: partial results that survive, and effects done once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.frozen_json import freeze, freeze_update
from pipeline.graph.definition.merging import folded
from pipeline.graph.execution.node_visit import refuse_unwritable
from pipeline.graph.run.events import CheckpointKind
from pipeline.graph.run.frames import NO_INPUTS, Frame
from pipeline.graph.run.records import RunRecord


class EffectUnknown(GraphError):
    """An earlier attempt began this effect, and it is unknown whether it was done."""

    code = "effect_unknown"


class Recorder(Protocol):
    """Takes the records of a step."""

    async def record(self, record: RunRecord, *, kind: CheckpointKind, label: str) -> None: ...

    async def barrier(self) -> None: ...


class Step:
    """One attempt at one node. Valid until the attempt is over."""

    __slots__ = ("_kept", "_recorder", "attempt", "execution", "frame", "node", "over", "run_id")

    def __init__(self, run_id: str, frame: Frame, execution: int, attempt: int, recorder: Recorder) -> None:
        self.run_id = run_id
        self.node = frame.label
        self.execution = execution
        """1 for the first."""
        self.attempt = attempt
        """1 for the first of this execution."""
        self.frame = frame
        """For the engine; nodes leave it alone."""
        self.over = False
        """The attempt has ended: it accepts no further calls."""
        self._recorder = recorder
        self._kept: Mapping[str, Any] = NO_INPUTS

    @property
    def kept(self) -> Mapping[str, Any]:
        """What has been kept so far."""
        return self._kept

    def keep(self, update: Mapping[str, Any]) -> None:
        """Keep a partial result: it enters the state if a cancellation, an abort or the run's deadline
        cuts this attempt off, and a resumed run runs the node again on it. A result or a failure of the
        node replaces it.

        Later calls replace the keys of earlier ones. On a channel that combines, the kept value stays, and
        the repeated node adds to it: read it before writing it again.

        Raises GraphError for anything but plain data, for keys that the node may not write, and for a value
        that its channel refuses, as no error may occur once the node is cut off.
        """
        self._refuse_when_over()
        kept = {**self._kept, **freeze_update(update, f"what node {self.node} keeps")}
        refuse_unwritable(self.node, self.frame.plan.spec, kept)
        folded(self.frame.values, self.frame.channels, kept)
        self._kept = kept

    async def barrier(self) -> None:
        """Return when everything recorded so far is durable. Call it before changing anything outside."""
        await self._recorder.barrier()

    async def effect(self, key: str, call: Callable[[], Awaitable[Any]], *, repeatable: bool = False) -> Any:
        """Call an outside effect once in this execution of the node, across crashes and attempts; its
        result is plain data.

        A finished effect is not called again: its recorded result is returned. One that had begun when the
        process died or the attempt was cut off is called again only if `repeatable`; otherwise this raises
        EffectUnknown. One that raised may be tried again.
        """
        self._refuse_when_over()
        state, result = self.frame.effects.get(key, ("", None))
        if state == "done":
            return result
        if state == "began" and not repeatable:
            raise EffectUnknown(f"node {self.node}: {key} was cut off, and it is unknown whether it was done")
        await self._note(key, "began")
        await self.barrier()
        try:
            given = await call()
        except Exception:
            await self._note(key, "failed")
            raise
        # Outside the try: the effect was done, and a result that cannot be recorded does not undo it.
        result = freeze(given, f"the result of {key}")
        await self._note(key, "done", result)
        return result

    def was_begun(self, key: str) -> bool:
        """Whether this effect was done, or was cut off: without `repeatable`, `effect` does not call it."""
        return self.frame.effects.get(key, ("", None))[0] in ("began", "done")

    def _refuse_when_over(self) -> None:
        if self.over:
            raise GraphError(f"node {self.node}: attempt {self.attempt} of visit {self.execution} is over")

    async def _note(self, key: str, state: str, result: Any = None) -> None:
        record: RunRecord = {"do": "effect", "node": self.frame.node, "key": key, "state": state}
        if self.frame.id:
            record["frame"] = self.frame.id
        if result is not None:
            record["result"] = result
        await self._recorder.record(record, kind="effect", label=self.node)


_CURRENT: ContextVar[Callable[[], Step]] = ContextVar("step")

# A step is created on request: most nodes never request one.
enter_step = _CURRENT.set
leave_step = _CURRENT.reset


def current_step() -> Step:
    """The step that the calling node runs in. Raises GraphError outside a run."""
    try:
        return _CURRENT.get()()
    except LookupError:
        raise GraphError("there is no step: this is not called from a node of a running graph") from None
