"""Run /undo, and prepare /retry and edits: take the last turn out of the conversation, or answer its
message again.

Nothing is deleted: the log keeps every answer. Of what tools did, only changes of files can be taken back.
"""

from __future__ import annotations

from gateway.agents.agent_book import Agent, AgentBook
from gateway.attachments.taken_again import ref_of, taken_again
from gateway.storage.codec import GATE, details_of, menu_of
from gateway.storage.ports import Interaction, Store
from gateway.turns.file_undo import FILES, FileUndo
from gateway.turns.journal import StoreJournal
from pipeline.domain.clock import Clock
from pipeline.domain.conversation import NO_SOURCE, PastTurn
from pipeline.domain.files import FileStore
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import InboundMessage, SessionCommand

YES = "yes"
_UNDONE = "I no longer use your last message and its answer. `/undo` again takes out the one before."
_DID = "\n\nThe answer used {tools}. What that did stays done."
_DID_BEFORE = (
    "The answer before used {tools}. What that did stays done, and a new answer may do it once more. Send "
    "`/retry yes` if you want one."
)
_CONFIRM = "Do you want a new answer, although tools may act once more?"
_NOTHING = "There is no message in this conversation that I could take out."
_NOTHING_AGAIN = "There is no message in this conversation that I could answer again."
_SUMMARISED = (
    "What was said here is summarised already, and single messages of it cannot be taken out. `/new` begins "
    "without it."
)
_OTHERS = "The last message here is another person's, so this is for them to decide."
_QUESTION_IS_OPEN = "I wait for your answer to a question there. Answer it first."
_WAS_AN_ANSWER = "Your last message answered a question of mine, so I cannot answer it again by itself."
_NO_WORDS = "Your last message had no words that I could answer again."
_CHANGED = "\n\nThe answer used {tools} and changed {file}. `/undo files` takes that back."
_TAKE_BACK = "Do you want {file} back as it was before?"
_ONLY_YES = "Only `yes` may follow `/retry`."
_MOST_TOOLS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """The last turn of a conversation, or why there is none to change."""

    turn: PastTurn | None = None
    refusal: str = ""


class LastTurnCommands:
    """Runs the commands in all threads. Keeps no state between two commands."""

    def __init__(
        self, store: Store, agents: AgentBook, files: FileStore, clock: Clock, changes: FileUndo
    ) -> None:
        self._store = store
        self._files = files
        self._agents = agents
        self._clock = clock
        self._changes = changes

    async def undo(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Take the last turn out, with a line that says so, or take back the last change of a file. Raises
        StorageError."""
        if command.argument:
            await journal.commit_notice(await self._changes.run(command))
            return
        last = await self._last(command, journal, nothing=_NOTHING)
        if last.turn is None:
            await journal.commit_notice(last.refusal)
            return
        tools = self._changing_tools(last.turn, command, journal)
        file = await self._changes.changed_by(last.turn.source, command) if tools else ""
        words, menu = _UNDONE + (_DID.format(tools=tools) if tools else ""), None
        if file:
            words = _UNDONE + _CHANGED.format(tools=tools, file=file)
            menu = self._menu(command, journal, _TAKE_BACK.format(file=file), FILES)
        await journal.commit_notice(words, code="undone", removed=last.turn.source.root, menu=menu)

    async def message_again(self, command: SessionCommand, journal: StoreJournal) -> InboundMessage | None:
        """The person's last message, for an answer that replaces the one before. None if there is none, or if
        the person has to confirm it first: then the entry is finished with a line. Raises StorageError."""
        last = await self._last(command, journal, nothing=_NOTHING_AGAIN)
        turn, words, asks = last.turn, last.refusal, False
        if command.argument and command.argument.casefold() != YES:
            words = _ONLY_YES
        elif turn is not None and turn.source.answers:
            words = _WAS_AN_ANSWER
        elif turn is not None and not (turn.source.text.strip() or turn.source.files):
            words = _NO_WORDS
        elif turn is not None and not command.argument:
            tools = self._changing_tools(turn, command, journal)
            words = _DID_BEFORE.format(tools=tools) if tools else ""
            asks = bool(tools)
        if turn is None or words:
            await journal.commit_notice(
                words, menu=self._menu(command, journal, _CONFIRM, YES) if asks else None
            )
            return None
        source = turn.source
        taken = await taken_again(self._files, command.thread, source.files, source.attached)
        if not (source.text.strip() or taken.files):
            await journal.commit_notice(taken.left_out)
            return None
        journal.messages.replaces = source.root
        journal.messages.taken = taken if source.files else None
        refs = tuple([ref_of(file) for file in source.files])
        return command.as_message(source.text, journal.mode, refs)

    async def _last(self, command: SessionCommand, journal: StoreJournal, *, nothing: str) -> _Last:
        known = await journal.conversation()
        if not known.turns:
            return _Last(refusal=nothing if known.summary is None else _SUMMARISED)
        turn = known.turns[-1]
        if not command.private and turn.source.author != command.author.id:
            return _Last(refusal=_OTHERS)
        pending = await self._store.pending_interactions(command.thread.encode(), now=self._clock.now())
        asked = [details_of(one).message_id for one in pending if one.kind == GATE]
        if turn.source.message_id in asked:
            return _Last(refusal=_QUESTION_IS_OPEN)
        return _Last(turn=turn)

    def _changing_tools(self, turn: PastTurn, command: SessionCommand, journal: StoreJournal) -> str:
        """The tools of the turn that do more than read, in words; empty for none."""
        agent = self._answering(command, journal)
        called = dict.fromkeys(call.name for message in turn.messages for call in message.tool_calls)
        names = [f"`{name}`" for name in called if not agent.reads_only(name)]
        return ", ".join([*names[:_MOST_TOOLS], "…"] if len(names) > _MOST_TOOLS else names)

    def _menu(self, command: SessionCommand, journal: StoreJournal, prompt: str, value: str) -> Interaction:
        at = self._clock.now()
        return menu_of(command, prompt, (value.capitalize(),), journal.session_id, at=at)

    def _answering(self, command: SessionCommand, journal: StoreJournal) -> Agent:
        return self._agents.answering(
            command.thread, command.author.id, private=command.private, chosen=journal.chosen_agent
        )


async def note_edit(message: InboundMessage, journal: StoreJournal) -> None:
    """Have the answer to an edited message replace the last turn, if that is the one of its earlier
    version. Raises StorageError."""
    known = await journal.conversation()
    source = known.turns[-1].source if known.turns else NO_SOURCE
    if source.root == message.place and source.author in ("", message.author.id):
        journal.messages.replaces = message.place
