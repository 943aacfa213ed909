"""The shield: decide on proposed actions, tier by tier, and label what they return.

Tier 0 is the policy, tier 1 the scanner, tier 2 the evaluator (another model), tier 3 a person. Without an
evaluator a person is asked in its place. The gate (`pipeline.tools.gate`) asks and executes.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.events import Decision
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Mode
from pipeline.domain.rates import SlidingWindow
from pipeline.shield.action_types import LEAST_TIER
from pipeline.shield.audit_events import AuditEvent, event_of
from pipeline.shield.evaluator import Evaluator
from pipeline.shield.flow import FlowDecision, FlowMode, Taints, decided, labels_of
from pipeline.shield.injection.findings import Assessment, ScanPart
from pipeline.shield.levels import Labels
from pipeline.shield.permissions import Permissions
from pipeline.shield.ports import AuditTrail, Permission, PolicySource, Scanner
from pipeline.shield.proposal import Proposal
from pipeline.shield.provenance import NOTHING_KNOWN, Provenance, ReadTexts
from pipeline.shield.rules import Policy, PolicyRule
from pipeline.shield.tier_one import parts_of
from pipeline.shield.verdict import Verdict

_log = logging.getLogger(__name__)

PER_MINUTE: Final = 30
"""Actions of one owner: with one limit for all owners, one person could lock out the others."""
_MINUTE_S = 60.0
_MOST_OWNERS = 1_000
"""Above this number, owners without an action in the last minute are removed."""
EVALUATOR: Final = 2
"""The tier of the evaluator."""
PERSON: Final = 3
"""The tier of a person."""

_TOO_MANY = "too many actions: more than {most} within a minute; try again in a moment"
_UNREADABLE = "the security policy cannot be read, so nothing runs; the operator has to correct its file"
_NAMES_TOO_MANY = "it names too many paths or hosts to be judged; do it in smaller steps"
_DENIED = "the rule “{rule}” of the security policy forbids it"
_FOREIGN = "the conversation holds text from elsewhere, so a person has to allow what changes anything"
_SUSPECTED = "text that was read before looks like instructions to the assistant"
_UNKNOWN = "it is a tool of others, and what it does is not known here"
_RULE = "the rule “{rule}” of the security policy asks for it"
_NO_RULE = "no rule of the security policy allows it"
_SUSPICIOUS = "it looks like an attack: {names}"
_ALLOWED = "the rule “{rule}” of the security policy allows it"
_PERMITTED = "you have allowed it for this conversation"
_APPROVED = "a person has allowed it"
_SINCE = "the conversation has read more since it was judged: {why}; propose it again, and a person is asked"
_LONGEST_HOST = 80
_NO_FINDING: Final = Assessment(decision="ALLOW", confidence=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, and what it was based on."""

    verdict: Verdict
    labels: Labels
    provenance: Provenance = NOTHING_KNOWN


class Shield:
    """Judges the actions of all turns. Without a `scanner` tier 1 finds nothing, and without an `evaluator` a
    person decides at tier 2.

    `flow_mode` "audit" records what the flow rules would stop, and stops by them only what one person's data
    would take to other chats.
    """

    def __init__(
        self,
        *,
        policies: PolicySource,
        audit: AuditTrail,
        taints: Taints,
        permissions: Permissions,
        clock: Clock,
        flow_mode: FlowMode = "enforce",
        scanner: Scanner | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.permissions = permissions
        self._policies = policies
        self._audit = audit
        self._taints = taints
        self._clock = clock
        self._flow_mode = flow_mode
        self._scanner = scanner
        self._evaluator = evaluator
        self._texts = ReadTexts()
        self._recent: dict[str, SlidingWindow] = {}

    async def judge(self, proposal: Proposal, *, again: bool = False) -> Judgement:
        """The verdict on a new action, which counts in its owner's limit, or `again` on one whose verdict is
        too old. Raises StorageError."""
        labels = await self._taints.of(proposal)
        block = partial(self._verdict, proposal, "BLOCK")
        if not again and not self._has_room(proposal.owner):
            return Judgement(verdict=block(_TOO_MANY.format(most=PER_MINUTE)), labels=labels)
        try:
            policy = await self._policies.current()
        except ConfigurationError as error:
            _log.error("the security policy cannot be read", extra={"reason": str(error)})
            return Judgement(verdict=block(_UNREADABLE), labels=labels)
        rule = policy.match(proposal)
        if rule is not None and rule.list == "deny":
            return Judgement(verdict=block(_DENIED.format(rule=rule.name), rule=rule.name), labels=labels)
        if proposal.names_too_many:
            return Judgement(verdict=block(_NAMES_TOO_MANY), labels=labels)
        provenance = self._texts.of(proposal.session_id, proposal.payload)
        flow, flags = self._flow(proposal, policy, labels, provenance.copied)
        if flow.flow == "block":
            return Judgement(verdict=block(flow.reason, flags=("flow",)), labels=labels)
        verdict = await self._by_tiers(proposal, rule, flow, flags, labels)
        return Judgement(verdict=verdict, labels=labels, provenance=provenance)

    async def objection(self, proposal: Proposal, verdict: Verdict) -> tuple[str, str]:
        """Why a judged action may not run any more, as a word for the audit and in words for people; both are
        empty if it may. The policy may have changed since, or the conversation have read more. `proposal`
        names the foreign text that there is now. Raises StorageError."""
        try:
            policy = await self._policies.current()
        except ConfigurationError:
            return "policy", _UNREADABLE
        rule = policy.match(proposal)
        if rule is not None and rule.list == "deny":
            return "rule", _DENIED.format(rule=rule.name)
        labels = await self._taints.of(proposal)
        flow, _flags = self._flow(proposal, policy, labels)
        if flow.flow == "block":
            return "flow", flow.reason
        # What a person has to decide now was not asked about: the evaluator may take half a minute.
        reasons = () if verdict.tier >= PERSON else _for_a_person(proposal, flow, labels)
        return ("flow", _SINCE.format(why="; ".join(reasons))) if reasons else ("", "")

    async def memory_problem(self, session_id: str, mode: Mode) -> str:
        """Why nothing of a conversation may be kept for later ones; empty if it may. Raises StorageError."""
        try:
            policy = await self._policies.current()
        except ConfigurationError:
            return _UNREADABLE
        labels = await self._taints.of_session(session_id, mode)
        if self._flow_mode == "audit" or policy.flow(labels, "memory") == "allow":
            return ""
        return f"it has read something {labels.level.word}, which may not be kept unasked"

    async def carry_over(self, source: str, target: str, mode: Mode) -> None:
        """Give the session `target`, which has that mode, the labels of the session `source`, whose words it
        gets. Durable when it returns. Raises StorageError."""
        await self._taints.add_to(target, await self._taints.of_session(source, "normal"), mode)

    def approved(self, proposal: Proposal, verdict: Verdict) -> Verdict:
        """The verdict after a person has allowed the action now."""
        allowed = self._verdict(
            proposal, "ALLOW", _APPROVED, tier=PERSON, rule=verdict.rule, flags=verdict.flags
        )
        return replace(allowed, asked=verdict.reasoning)

    def is_too_old(self, verdict: Verdict) -> bool:
        """Whether the verdict has to be reached again."""
        return verdict.is_too_old(self._clock.monotonic())

    def problem(self, verdict: Verdict, action_hash: str) -> str:
        """Why the verdict does not hold for an action with that hash now; empty if it does."""
        return verdict.problem(action_hash, self._clock.monotonic())

    async def reader(self, proposal: Proposal) -> Callable[[str], bool] | None:
        """Which files and notes an action may read that does not name them, and to which hosts one that
        fetches a page may be redirected; None for other actions."""
        # An attachment is named by its number too.
        searches = proposal.type in ("read_file", "read_note") and not proposal.paths
        searches = searches or proposal.type == "read_attachment"
        if proposal.type in ("read_note", "delete_note"):
            # A title that is not known is answered with those that may be read.
            proposal, searches = replace(proposal, type="read_note"), True
        if not searches and proposal.type != "fetch_url":
            return None
        try:
            policy = await self._policies.current()
        except ConfigurationError:
            return lambda _name: False
        return policy.reader(proposal) if searches else lambda host: not policy.closes(proposal, host)

    async def note_result(
        self, proposal: Proposal, text: str, foreign: str, read: Sequence[str] = ()
    ) -> None:
        """Label the conversation with what an action has returned: how confidential it is, and whether
        foreign text in it looks like instructions to the assistant. `read` names the files and notes in it
        that the action does not name. Call it before the result is used. Raises StorageError."""
        try:
            labels = labels_of(proposal, await self._policies.current(), read)
        except ConfigurationError:
            # The action was judged by a policy that is gone: the highest level of it is not known.
            labels = labels_of(proposal, Policy(), read)
        found = _NO_FINDING
        if foreign:
            self._texts.note(proposal.session_id, foreign, text, private=False)
            found = await self._assessed((ScanPart(kind="text", text=text, where="result"),))
        elif labels.private:
            self._texts.note(proposal.session_id, labels.sources[0], text, private=True)
        if found.decision == "ALLOW":
            await self._taints.add(proposal, labels)
            return
        await self._taints.add(proposal, labels.joined(Labels(suspects=(_source(proposal, foreign),))))
        suspected = event_of("result_suspected", proposal, decision=found.decision, flags=list(_names(found)))
        await self.record(proposal, [suspected])

    def record(self, proposal: Proposal, events: Sequence[AuditEvent]) -> Awaitable[None]:
        """Begin to write events to the audit; durable once awaited. Off the record nothing is written. Raises
        StorageError when awaited, never before."""
        return _Nothing() if proposal.mode == "otr" else self._audit.write(events)

    async def revoked(self, permission: Permission) -> None:
        """Record that a permission was taken back. Raises StorageError."""
        details = {
            "session": permission.session_id,
            "thread": permission.thread,
            "person": permission.person,
            "action_type": permission.type,
        }
        await self._audit.write([AuditEvent(type="rule_revoked", details=details)])

    # -- the tiers ----------------------------------------------------------------------------
    async def _by_tiers(
        self,
        proposal: Proposal,
        rule: PolicyRule | None,
        flow: FlowDecision,
        flags: tuple[str, ...],
        labels: Labels,
    ) -> Verdict:
        tier, reasons = _least_tier(proposal, rule, flow, labels)
        name = "" if rule is None else rule.name
        if tier == 0:
            return self._verdict(proposal, "ALLOW", _ALLOWED.format(rule=name), rule=name, flags=flags)
        found = await self._assessed(parts_of(proposal))
        flags = (*flags, *_names(found))
        if found.decision != "ALLOW":
            words = _SUSPICIOUS.format(names=", ".join(_names(found)))
            if found.decision == "BLOCK":
                return self._verdict(
                    proposal, "BLOCK", words, tier=1, confidence=found.confidence, rule=name, flags=flags
                )
            tier, reasons = max(tier, EVALUATOR), (*reasons, words)
        if tier == 1:
            words = _ALLOWED.format(rule=name)
            return self._verdict(
                proposal, "ALLOW", words, tier=1, confidence=found.confidence, rule=name, flags=flags
            )
        lasts = found.decision == "ALLOW" and not flow.each_time
        if lasts and await self.permissions.covers(proposal, labels):
            return self._verdict(proposal, "ALLOW", _PERMITTED, tier=PERSON, rule=name, flags=flags)
        if tier == EVALUATOR and self._evaluator is not None:
            said = await self._evaluator.evaluate(proposal, labels, _names(found))
            flags, words = (*flags, said.flag), said.reasoning
            # It can stop what the scanner has found something in, and cannot allow it.
            if said.decision == "BLOCK" or (said.decision == "ALLOW" and found.decision == "ALLOW"):
                return self._verdict(proposal, said.decision, words, tier=EVALUATOR, rule=name, flags=flags)
            reasons = reasons if said.decision == "ALLOW" else (*reasons, words)
        return self._verdict(proposal, "ESCALATE", "; ".join(reasons), tier=PERSON, rule=name, flags=flags)

    async def _assessed(self, parts: Sequence[ScanPart]) -> Assessment:
        return _NO_FINDING if self._scanner is None else await self._scanner.assess(parts)

    def _flow(
        self, proposal: Proposal, policy: Policy, labels: Labels, copied: tuple[str, ...] = ()
    ) -> tuple[FlowDecision, tuple[str, ...]]:
        flow = decided(proposal, policy, labels, copied)
        if self._flow_mode == "enforce" or flow.always or flow.flow == "allow":
            return flow, ()
        return FlowDecision(), (f"flow-would-{flow.flow}",)

    def _verdict(
        self,
        proposal: Proposal,
        decision: Decision,
        reasoning: str,
        *,
        tier: int = 0,
        confidence: float = 1.0,
        rule: str = "",
        flags: tuple[str, ...] = (),
    ) -> Verdict:
        return Verdict(
            decision=decision,
            reasoning=reasoning,
            action_hash=proposal.action_hash,
            evaluated_at=self._clock.monotonic(),
            tier=tier,
            confidence=confidence,
            rule=rule,
            flags=flags,
        )

    def _has_room(self, owner: str) -> bool:
        now = self._clock.monotonic()
        if len(self._recent) >= _MOST_OWNERS:
            self._recent = {key: times for key, times in self._recent.items() if not times.is_empty(now)}
        times = self._recent.get(owner)
        if times is None:
            times = self._recent[owner] = SlidingWindow(PER_MINUTE, _MINUTE_S)
        if times.wait_s(now) > 0:
            return False
        times.add(now)
        return True


def _names(found: Assessment) -> tuple[str, ...]:
    """The names of the rules, each once."""
    return tuple(dict.fromkeys(one.name for one in found.findings))


def _source(proposal: Proposal, foreign: str) -> str:
    """The source of a foreign text, with the host that the action named."""
    host = proposal.hosts[0] if len(proposal.hosts) == 1 else ""
    return (
        f"{foreign} ({host})"
        if host.isascii() and host.isprintable() and 0 < len(host) <= _LONGEST_HOST
        else foreign
    )


def _least_tier(
    proposal: Proposal, rule: PolicyRule | None, flow: FlowDecision, labels: Labels
) -> tuple[int, tuple[str, ...]]:
    """The least tier that has to decide, and the reasons for asking a person."""
    tier, reasons = LEAST_TIER.get(proposal.type, 0), []
    if rule is None:
        tier = PERSON
        reasons.append(_UNKNOWN if proposal.type == "unknown" else _NO_RULE)
    elif rule.list == "verify":
        tier = max(tier, rule.tier)
        reasons.append(_RULE.format(rule=rule.name))
    elif proposal.type == "unknown":
        reasons.append(_UNKNOWN)
    required = _for_a_person(proposal, flow, labels)
    return PERSON if required else tier, (*reasons, *required)


def _for_a_person(proposal: Proposal, flow: FlowDecision, labels: Labels) -> tuple[str, ...]:
    """Why only a person may decide, whatever the rules say, because of what the conversation has read."""
    reasons = []
    if (proposal.foreign or labels.suspects) and not proposal.reads_only and proposal.type != "delegate":
        reasons.append(_SUSPECTED if labels.suspects else _FOREIGN)
    if flow.flow == "ask":
        reasons.append(flow.reason)
    return tuple(reasons)


class _Nothing:
    """An awaitable that is done."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield
