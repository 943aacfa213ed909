"""Build the session commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from adapters.channel import PostingChannel
from gateway.access.policy import AccessPolicy
from gateway.agents.agent_book import AgentBook
from gateway.app.components import Foundation
from gateway.app.heartbeat import heartbeat_zone
from gateway.app.tools import SharedTools
from gateway.channels.registry import ChannelRegistry
from gateway.delivery.reply_files import posts_files
from gateway.people.announcements import Announcer
from gateway.people.linking import Linking
from gateway.speech.speaker_language import likely_language
from gateway.speech.voice_download import VoiceDownload
from gateway.storage.identities import Identity, Member
from gateway.storage.ports import Interaction
from gateway.turns.agent_choice import AgentChoice
from gateway.turns.allowed_command import AllowedCommand
from gateway.turns.commands import SessionCommands
from gateway.turns.conversation_export import ConversationExport
from gateway.turns.file_undo import FileUndo
from gateway.turns.heartbeat_command import HeartbeatCommand
from gateway.turns.history_search import HistorySearch
from gateway.turns.last_turn import LastTurnCommands
from gateway.turns.link_commands import LinkCommands
from gateway.turns.memory_command import MemoryCommand
from gateway.turns.model_choice import ModelChoice
from gateway.turns.run_command import RunCommand
from gateway.turns.runs_command import RunsCommand
from gateway.turns.schedules_command import SchedulesCommand
from gateway.turns.status_command import StatusCommand
from gateway.turns.usage_command import UsageCommand
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import SessionCommand
from pipeline.runtime.watching import Heartbeats


def build_commands(
    base: Foundation,
    agents: AgentBook,
    tools: SharedTools,
    access: AccessPolicy,
    heartbeats: Heartbeats | None,
    closed: Callable[[Interaction], None],
) -> SessionCommands:
    """Build them. `heartbeats` is None where they are off. `closed` shows at its message that a question is
    no longer open."""
    linking = Linking(
        book=base.store.identities,
        people=base.people,
        preferences=base.preferences,
        sums=tools.budgets,
        carry_over=tools.carry_over,
        clock=base.clock,
    )
    announcer = Announcer(
        store=base.store, clock=base.clock, wake=base.bus.wake, still_allowed=access.still_allows
    )
    return SessionCommands(
        preferences=base.preferences,
        can_speak=base.replies.possible,
        copies=base.broadcaster.copies,
        choice=AgentChoice(agents, base.clock),
        models=ModelChoice(agents, base.clock),
        workflows=RunCommand(agents, base.clock, partial(_language_of, base)),
        listed_runs=RunsCommand(base.store, agents, base.clock, closed),
        links=LinkCommands(linking, announcer),
        fetch_voice=partial(_fetch_voice, base.voice_download, announcer),
        last_turn=LastTurnCommands(base.store, agents, base.files, base.clock, FileUndo(tools.chronicle)),
        history=HistorySearch(base.store, base.people),
        export=ConversationExport(
            base.timeline,
            base.files,
            base.clock,
            base.settings.bot.name,
            takes_files=partial(_takes_files, base.channels),
        ),
        allowed=AllowedCommand(base.store.shield.permissions, tools.shield.revoked),
        schedules=SchedulesCommand(tools.reminders),
        memory=MemoryCommand(
            base.store.memories,
            base.people.person_of,
            base.clock,
            is_on=base.settings.memory.mode != "incognito",
        ),
        heartbeat=HeartbeatCommand(heartbeats, heartbeat_zone(base.settings)),
        carry_over=tools.shield.carry_over,
        usage=UsageCommand(tools.budgets, base.people),
        status=StatusCommand(
            store=base.store,
            preferences=base.preferences,
            agents=agents,
            can_speak=base.replies.possible,
            clock=base.clock,
        ),
    )


async def _language_of(base: Foundation, command: SessionCommand) -> str:
    """The language that the author of the command speaks; empty for none known."""
    return await likely_language(
        base.preferences, base.speech_of, command.thread, command.author.id, private=command.private
    )


def _takes_files(channels: ChannelRegistry, thread: ThreadKey) -> bool:
    channel = channels.of(thread)
    return isinstance(channel, PostingChannel) and posts_files(channel)


def _fetch_voice(download: VoiceDownload | None, announcer: Announcer, command: SessionCommand) -> str:
    """Begin to fetch a missing voice for the author of a `/voice`, who reads in a private chat when it is
    there; a line about it, or empty."""
    if download is None:
        return ""
    if not command.private:
        return download.request()
    thread, user = command.thread, command.author.id
    identity = Identity(channel=thread.channel, account=thread.account, user=user)
    member = Member(identity=identity, thread=thread.encode())

    async def announce(words: str) -> None:
        await announcer.announce(member, words, cause=f"{command.message_id}_voice")

    return download.request(identity.key, announce)
