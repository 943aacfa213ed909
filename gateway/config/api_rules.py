"""Find the problems of the HTTP API across settings: names that do not exist, tables that lead nowhere."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from adapters.api.run_ids import CHANNEL
from gateway.config.agent_settings import agent_settings
from gateway.config.agents import DEFAULT_AGENT
from gateway.config.api import EVERY_WORKFLOW, ApiSettings
from gateway.config.problems import Problem, SettingSource
from gateway.config.secrets import SecretUnavailable
from gateway.config.settings import Settings
from pipeline.domain.errors import ConfigurationError

SourceOf = Callable[[str], SettingSource]


def workflow_agents(settings: Settings) -> dict[str, str]:
    """The graphs of the agents that run a workflow, a saved one, or a playbook, by the agents' names. Reads
    the documents; those that cannot be read are left out."""
    from pipeline.graph_book import SAVED, is_document  # noqa: PLC0415 - as needed

    graphs = {name: agent_settings(settings, name).agent.graph for name in (DEFAULT_AGENT, *settings.agents)}
    return {
        name: graph
        for name, graph in graphs.items()
        if graph.startswith(SAVED) or (is_document(graph) and _is_run(Path(graph)))
    }


def _is_run(path: Path) -> bool:
    """Whether other programs can run the document in the file."""
    from pipeline.graph_book import installed_graphs  # noqa: PLC0415 - as needed

    try:
        return installed_graphs().workflow(str(path)) is not None
    except ConfigurationError:
        return False  # another check reports it


def api_problems(
    settings: Settings, bad: Collection[str], source_of: SourceOf, *, secrets: bool
) -> list[Problem]:
    """The problems; none where a setting that they are about has a bad value. With `secrets`, also tokens
    that two programs share."""
    api = settings.api
    if any(path.startswith("api.") for path in bad):
        return []
    if not api.enabled:
        return []
    if not (api.tokens or api.webhooks):
        what = f"is true, but there is no token{_where('api.enabled', source_of)}"
        return [Problem(path="api.enabled", what=what, fix="write a table [api.tokens.NAME], or remove it")]
    agents_are_bad = any(path.startswith("agent") for path in bad)
    graphs = {} if agents_are_bad else workflow_agents(settings)
    known = None if agents_are_bad else tuple(graphs)
    found = [*_tokens(api, known, source_of), *_webhooks(api, known, source_of)]
    return [*found, *_approvers(api, graphs, source_of), *(_shared(api) if secrets else ())]


def _tokens(api: ApiSettings, known: tuple[str, ...] | None, source_of: SourceOf) -> Iterator[Problem]:
    for name, one in api.tokens.items():
        table = f"api.tokens.{name}"
        if one.token is None:
            where = _where(f"{table}.scopes", source_of) or _where(f"{table}.workflows", source_of)
            fix = "set it to a reference to a secret, such as env:API_TOKEN"
            yield Problem(path=f"{table}.token", what=f"is not set{where}", fix=fix)
        if not one.scopes:
            what = f"is empty: the token may do nothing{_where(f'{table}.scopes', source_of)}"
            yield Problem(path=f"{table}.scopes", what=what, fix='write for example ["run", "read"]')
        if not one.workflows:
            where = _where(f"{table}.workflows", source_of) or _where(f"{table}.token", source_of)
            fix = f'name workflows, or write ["{EVERY_WORKFLOW}"]'
            yield Problem(path=f"{table}.workflows", what=f"names no workflow{where}", fix=fix)
        for workflow in one.workflows:
            if workflow != EVERY_WORKFLOW and known is not None and workflow not in known:
                yield _no_workflow(f"{table}.workflows", workflow, known, source_of)


def _webhooks(api: ApiSettings, known: tuple[str, ...] | None, source_of: SourceOf) -> Iterator[Problem]:
    for name, one in api.webhooks.items():
        table = f"api.webhooks.{name}"
        given = next((key for key in type(one).model_fields if _where(f"{table}.{key}", source_of)), "secret")
        where = _where(f"{table}.{given}", source_of)
        if one.secret is None:
            fix = "set it to a reference to a secret, such as env:WEBHOOK_SECRET"
            yield Problem(path=f"{table}.secret", what=f"is not set{where}", fix=fix)
        if not one.workflow:
            fix = "write the name of the agent whose graph is the workflow"
            yield Problem(path=f"{table}.workflow", what=f"is not set{where}", fix=fix)
        elif known is not None and one.workflow not in known:
            yield _no_workflow(f"{table}.workflow", one.workflow, known, source_of)
        owner = api.tokens.get(one.token)
        if owner is None:
            what = "is not set" if not one.token else f"there is no token {one.token!a}"
            fix = f"name one of: {', '.join(api.tokens) or 'none yet; write a table [api.tokens.NAME]'}"
            yield Problem(path=f"{table}.token", what=what + where, fix=fix)
        elif one.workflow and not {one.workflow, EVERY_WORKFLOW} & set(owner.workflows):
            what = f"the token {one.token} may not use the workflow {one.workflow!a}{where}"
            fix = f"add it to api.tokens.{one.token}.workflows, or name another token"
            yield Problem(path=f"{table}.token", what=what, fix=fix)


def _approvers(api: ApiSettings, graphs: Mapping[str, str], source_of: SourceOf) -> Iterator[Problem]:
    """Approvers of the API that no token is, or whose token may not answer: the run would wait for ever."""
    if not graphs:
        return
    from pipeline.graph_book import installed_graphs, is_document  # noqa: PLC0415 - as needed
    from pipeline.workflows.document import Workflow, WorkflowApproval  # noqa: PLC0415 - as above

    for name, path in graphs.items():
        document = installed_graphs().workflow(path) if is_document(path) else None
        for node in document.nodes.values() if isinstance(document, Workflow) else ():
            named = node.approvers if isinstance(node, WorkflowApproval) else ()
            for user in [one.rpartition(":")[2] for one in named if one.partition(":")[0] == CHANNEL]:
                token = api.tokens.get(user)
                if token is not None and "answer" in token.scopes:
                    continue
                graph = "agent.graph" if name == DEFAULT_AGENT else f"agents.{name}.graph"
                why = "is no token of the API" if token is None else "is a token without the scope answer"
                what = (
                    f"{path}: node {node.id}: the approver {CHANNEL}:{user} {why}{_where(graph, source_of)}"
                )
                fix = f"write [api.tokens.{user}] with the scope answer, or name another approver"
                yield Problem(path=graph, what=what, fix=fix)


def _shared(api: ApiSettings) -> Iterator[Problem]:
    """Tokens with the same value: who has one would be another."""
    users: dict[str, str] = {}
    for path, reference in api.secret_refs().items():
        if reference is None:
            continue
        try:
            other = users.setdefault(reference.resolve(), path)
        except SecretUnavailable:
            continue  # another check reports it
        if other != path:
            yield Problem(path=path, what=f"has the value of {other}", fix="make another secret for each")


def _no_workflow(path: str, name: str, known: tuple[str, ...], source_of: SourceOf) -> Problem:
    close = difflib.get_close_matches(name[:80], known, n=1)
    fix = f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(known) or 'none'}"
    what = f"no agent {name!a} has a workflow as its graph{_where(path, source_of)}"
    return Problem(path=path, what=what, fix=fix)


def _where(path: str, source_of: SourceOf) -> str:
    source = source_of(path)
    return "" if source.kind == "default" else f" ({source.phrase()})"
