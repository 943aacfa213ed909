"""Make the records of crisis responses, without words and with hashed ids, and delete old ones."""

from __future__ import annotations

import hashlib
import hmac
import logging

from gateway.safety.notices import NoticeTarget, notice_job
from gateway.storage.crises import CrisisBook, CrisisRecord
from gateway.storage.jobs import NewJob
from gateway.storage.ports import InboxEntry
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey, identity_key
from pipeline.safety.assessment import CrisisAssessment

_log = logging.getLogger(__name__)

_DAY_S = 86_400.0


class CrisisRecords:
    """The records of one gateway. `key` is secret: without it, no trying out of ids tells to which session or
    message a record belongs."""

    def __init__(
        self, key: bytes, book: CrisisBook, clock: Clock, notices: NoticeTarget | None = None
    ) -> None:
        self._key = key
        self._book = book
        self._clock = clock
        self._notices = notices

    def record(
        self, assessment: CrisisAssessment | None, entry: InboxEntry, session_id: str, *, off_record: bool
    ) -> CrisisRecord | None:
        """The record of the crisis response to `entry`, made now; None without an assessment, and where it
        cannot be made: the response is more important than its record."""
        if assessment is None:
            return None
        try:
            return self._made(assessment, entry, session_id, off_record=off_record)
        except Exception:  # noqa: BLE001 - whatever fails, the person gets the response
            _log.exception("a crisis response has no record")
            return None

    def notice(self, record: CrisisRecord, entry: InboxEntry, agent: str) -> tuple[NewJob, ...]:
        """The job that tells the operator of `record`; none without a chat for notices."""
        if self._notices is None:
            return ()
        thread = ThreadKey.decode(entry.thread)
        chat = self._hash(entry.thread)
        return (notice_job(record, thread, chat, agent or "default", self._notices),)

    async def count_failure(self, level: int) -> None:
        """Count a call of the classifier that brought no verdict, after which `level` stays. Raises
        nothing."""
        try:
            await self._book.count_failure(at=self._clock.now(), level=level)
        except StorageError as error:
            _log.error("a failure of the crisis classifier is not counted", extra={"reason": str(error)})

    def _made(
        self, assessment: CrisisAssessment, entry: InboxEntry, session_id: str, *, off_record: bool
    ) -> CrisisRecord:
        thread = ThreadKey.decode(entry.thread)
        return CrisisRecord(
            id=self._hash(entry.message_id),
            session=self._hash(session_id),
            user=None if off_record else identity_key(*thread.account_key, entry.item.author.id),
            at=self._clock.now(),
            level=assessment.level,
            override=assessment.override,
            path=assessment.path,
            reason=assessment.reason,
            completed=assessment.path != "failed",
            llm_failed=assessment.llm_failed,
        )

    async def remove_old(self) -> None:
        """Delete the records whose time is over now and once a day, until cancelled."""
        while True:
            try:
                removed = await self._book.prune(now=self._clock.now())
            except StorageError as error:
                _log.warning("old crisis records could not be removed", extra={"reason": str(error)})
            else:
                if removed:
                    _log.info("old crisis records removed", extra={"records": removed})
            await self._clock.sleep(_DAY_S)

    def _hash(self, identity: str) -> str:
        return hmac.digest(self._key, identity.encode(), hashlib.sha256).hex()
