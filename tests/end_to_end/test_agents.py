"""Several agents in one gateway: who answers where, choosing another one, runs that outlive a change.

Covers: gateway/agents/agent_book.py, gateway/app/agents.py, gateway/turns/agent_choice.py.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ErrorEvent
from pipeline.domain.messages import Author, SessionCommand, parse_command
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gate_graph import Ledger, answer_to, gate_graph
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts

_SHOP = 'agents.shop.system_prompt="You sell tea."'
_COOK = 'agents.cook.description="Knows recipes"'
_COOK_PROMPT = 'agents.cook.system_prompt="You cook."'
_DEFAULT = "You are a helpful assistant."


async def _ask(harness: GatewayHarness, text: str) -> str:
    """Say it; the reply."""
    accepted = await harness.channel.say(text)
    return (await harness.channel.reply(accepted.message_id)).text


async def _post(posts: MemoryPosts, author: str, text: str, answer: str = "You said") -> str:
    """Say it as somebody in a direct chat of the posting channel; the reply, which contains `answer`."""
    before = len(posts.texts(author))
    command, native_id = parse_command(text), f"{author}-{before}"
    if command is None:
        await posts.receive(text, native_id=native_id, chat=author, author=author)
    else:
        item = SessionCommand(
            message_id=native_id,
            native_id=native_id,
            thread=posts.thread(author),
            author=Author(id=author),
            received_at=1_700_000_000.0,
            name=command.name,
            argument=command.argument,
        )
        await posts.bring(item)

    def shown() -> str:
        return "".join(posts.texts(author)[before:])

    # The channel shows an answer in parts, and its beginning first.
    await posts.until(lambda: answer in shown())
    return shown()


def _prompt(harness: GatewayHarness) -> str:
    """The newest request's system prompt, up to what is added for all agents."""
    return harness.llm.requests[-1].messages[0].content.partition(" Today is ")[0]


def _tools(harness: GatewayHarness) -> list[str]:
    """The names of the tools in the newest request."""
    return [tool.name for tool in harness.llm.requests[-1].tools]


async def test_a_route_leads_to_an_assistant_on_one_channel_and_the_rest_stays(tmp_path: Path) -> None:
    posts = MemoryPosts()
    route = ('routes.1.agent="shop"', f'routes.1.account="{posts.account}"')
    async with open_gateway(tmp_path, _SHOP, *route, posts=posts) as harness:
        await _post(posts, "ann", "what do you have?")
        assert _prompt(harness) == "You sell tea."

        assert await _ask(harness, "and you?") == "You said: and you?"
        assert _prompt(harness).startswith(_DEFAULT)


async def test_two_people_get_the_agents_that_their_routes_name(tmp_path: Path) -> None:
    route = ('routes.1.agent="shop"', 'routes.1.person="ann"')
    posts = MemoryPosts()
    async with open_gateway(tmp_path, _SHOP, *route, posts=posts) as harness:
        await _post(posts, "ann", "hello")
        assert _prompt(harness) == "You sell tea."
        await _post(posts, "bob", "hello")
        assert _prompt(harness).startswith(_DEFAULT)


async def test_agent_lists_what_there_is_and_begins_a_conversation_with_the_chosen_one(
    tmp_path: Path,
) -> None:
    given = (_SHOP, _COOK, _COOK_PROMPT, 'routes.1.also=["cook"]')
    async with open_gateway(tmp_path, *given) as harness:
        listed = await _ask(harness, "/agent")
        assert listed.splitlines()[2:4] == ["- `default` (answers now)", "- `cook`: Knows recipes"]
        assert "shop" not in listed
        assert "`/agent`" in await _ask(harness, "/help")
        await _ask(harness, "remember quokka")

        assert await _ask(harness, "/agent Cook") == "New conversation with cook"
        assert await _ask(harness, "what was it?") == "You said: what was it?"
        assert _prompt(harness) == "You cook."
        assert not any("quokka" in message.content for message in harness.llm.requests[-1].messages)
        assert "- `cook` (answers now): Knows recipes" in await _ask(harness, "/agent")
        assert await _ask(harness, "/agent cook") == "`cook` answers here already."
    async with open_gateway(tmp_path, *given) as harness:
        await _ask(harness, "still there?")
        assert _prompt(harness) == "You cook."
        await _ask(harness, "/new")
        await _ask(harness, "and now?")
        assert _prompt(harness) == "You cook."
        assert await _ask(harness, "/agent default") == "New conversation with default"
        await _ask(harness, "hello")
        assert _prompt(harness).startswith(_DEFAULT)


async def test_an_assistant_that_no_route_allows_cannot_be_chosen(tmp_path: Path) -> None:
    given = (_SHOP, _COOK, 'routes.1.person="ann"', 'routes.1.also=["cook"]')
    posts = MemoryPosts()
    async with open_gateway(tmp_path, *given, posts=posts) as harness:
        await _post(posts, "ann", "/agent `shop`\n# no", "There is no agent `shop # no`")
        await _post(posts, "bob", "/agent cook", "There is one agent here")
        for person in ("ann", "bob"):
            await _post(posts, person, "hello")
            assert _prompt(harness).startswith(_DEFAULT)


async def test_a_choice_ends_where_the_configuration_takes_it_back(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, _COOK_PROMPT, 'routes.1.also=["cook"]') as harness:
        await _ask(harness, "/agent cook")
    async with open_gateway(tmp_path, _COOK_PROMPT) as harness:
        await _ask(harness, "hello")
        assert _prompt(harness).startswith(_DEFAULT)
        assert "/agent" not in await _ask(harness, "/help")


async def test_a_conversation_off_the_record_stays_so_with_another_assistant(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, _COOK_PROMPT, 'routes.1.also=["cook"]') as harness:
        await _ask(harness, "/otr")
        await _ask(harness, "/agent cook")
        await _ask(harness, "secret quokka")
        assert _prompt(harness) == "You cook."
        assert await harness.records("user") == []


async def test_an_answer_resumes_the_run_of_the_assistant_that_asked(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    given = (_SHOP, _COOK, 'routes.1.agent="shop"', 'routes.1.also=["cook"]')
    async with open_gateway(tmp_path, *given, graph=gate_graph(ledger)) as harness:
        await _ask(harness, "pay")
        [question] = await harness.store.pending_interactions(THREAD, now=0.0)
        await _ask(harness, "/agent cook")
        await harness.channel.bring(answer_to(question.id, "approve"))
        assert (await harness.channel.reply("m_answer")).text.startswith("pay: approve by owner")
        agents = [record.body.get("agent") for record in await harness.records("user")]
        assert agents == ["shop", "shop"]


async def test_an_answer_to_an_assistant_that_was_removed_says_so_and_does_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    async with open_gateway(tmp_path, _SHOP, 'routes.1.agent="shop"', graph=gate_graph(ledger)) as harness:
        await _ask(harness, "pay")
        [question] = await harness.store.pending_interactions(THREAD, now=0.0)
    async with open_gateway(tmp_path, graph=gate_graph(ledger)) as harness:
        await harness.channel.bring(answer_to(question.id, "approve"))
        ended = await harness.channel.terminal("m_answer")
        assert isinstance(ended, ErrorEvent)
        assert ended.code == "no_agent"
        assert ended.message.startswith("The agent that worked on this message is no longer there")
    assert ledger.lines() == ["prepare", "ask"]


async def test_a_budget_of_one_assistant_ends_without_the_others(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("Dear.",), prompt_tokens=1_000) for _ in range(3)])
    given = ("agents.shop.tokens=900", 'routes.1.agent="shop"', 'routes.1.also=["default"]')
    async with open_gateway(tmp_path, *given, llm=llm, clock=ManualClock(1_900_065_600.0)) as harness:
        assert await _ask(harness, "one") == "Dear."
        refused = await _ask(harness, "two")
        assert refused.startswith("This agent's budget for today is used up.")
        await _ask(harness, "/agent default")
        assert await _ask(harness, "three") == "Dear."


async def test_an_assistant_gets_its_own_tools_and_model(tmp_path: Path) -> None:
    given = (
        'agents.shop.model="scripted:fail:unavailable"',
        "agents.cook.tools=[]",
        'routes.1.agent="shop"',
        'routes.1.person="ann"',
        'routes.2.agent="cook"',
        'routes.2.person="bob"',
    )
    posts = MemoryPosts()
    async with open_gateway(tmp_path, *given, posts=posts) as harness:
        await _post(posts, "ann", "hello", "fails on purpose")
        assert harness.llm.requests == []
        await _post(posts, "bob", "hello")
        assert _tools(harness) == []
        await _ask(harness, "hello")
        assert _tools(harness) == ["load_tools"]


async def test_agents_with_one_folder_share_what_writes_there_and_others_do_not(tmp_path: Path) -> None:
    other = tmp_path / "cook"
    given = ("agents.shop.tokens=9", f'agents.cook.workspace="{other}"', 'routes.1.also=["shop", "cook"]')
    (other / "skills").mkdir(parents=True)
    (other / "IDENTITY.md").write_text("I am the cook.", encoding="utf-8")
    async with open_gateway(tmp_path / "data", *given) as harness:
        (tmp_path / "data" / "workspace").mkdir(exist_ok=True)
        (tmp_path / "data" / "workspace" / "IDENTITY.md").write_text("I am the clerk.", encoding="utf-8")
        for name, identity in (("shop", "the clerk"), ("cook", "the cook")):
            await _ask(harness, f"/agent {name}")
            await _ask(harness, "who are you?")
            assert f"I am {identity}." in harness.llm.requests[-1].messages[0].content
