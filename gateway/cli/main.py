"""The `parlour` command: parse the command line and run the subcommand. Imports heavy modules on demand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gateway import __version__
from gateway.cli.people_arguments import add_people
from gateway.cli.record_arguments import add_audit, add_crises, add_history, add_jobs, add_undo
from gateway.cli.store_arguments import add_store
from gateway.cli.workflow_arguments import add_workflow
from pipeline.domain.errors import ConfigurationError, ParlourError

if TYPE_CHECKING:
    from gateway.cli.stored_books import StorePlace

OK, FAILED, BAD_CONFIGURATION = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 done, 1 failed, 2 wrong configuration or command line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.run is None:
        parser.print_help()
        return OK
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except ParlourError as error:
        for line in str(error).splitlines():
            _complain(line)
        return BAD_CONFIGURATION if error.code == "configuration" else FAILED
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="parlour", description="One bot, every room: a durable multi-channel chat bot gateway."
    )
    parser.add_argument("--version", action="version", version=f"parlour {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    common = _common()

    serve = commands.add_parser("serve", parents=[common], help="run the gateway with its channels")
    serve.set_defaults(run=_serve)

    chat = commands.add_parser("chat", parents=[common], help="talk to the same bot in this terminal")
    _add_sent_files(chat)
    chat.set_defaults(run=_chat)

    _add_init(
        commands.add_parser("init", help="set Parlour up: channels, tokens and the model, by questions")
    )

    link = commands.add_parser(
        "link", parents=[common], help="a link that signs a browser in to the page, also as a QR code"
    )
    link.set_defaults(run=_link)

    doctor = commands.add_parser("doctor", parents=[common], help="test this installation")
    doctor.set_defaults(run=_doctor)

    check = commands.add_parser("check-config", parents=[common], help="explain the configuration")
    check.set_defaults(run=_check_config)

    paired = commands.add_parser(
        "pair", parents=[common], help="let strangers talk to the bot, by their codes"
    )
    paired.add_argument(
        "code", nargs="?", metavar="CODE", help="what the bot showed them; without it, who asks and who is in"
    )
    paired.add_argument("--yes", action="store_true", help="do not ask before letting somebody in")
    paired.add_argument("--remove", nargs=2, metavar=("CHANNEL", "USER"), help="let them in no longer")
    paired.set_defaults(run=_pair)

    add_people(
        commands.add_parser("people", help="invite people to the page, and remove them"), common, _people
    )

    jobs = commands.add_parser("jobs", parents=[common], help="the work that waits, and what was given up")
    add_jobs(jobs, _jobs)

    _add_feedback(commands.add_parser("feedback", parents=[common], help="people's thumbs on answers"))

    add_history(
        commands.add_parser("history", parents=[common], help="what tools changed in files"), _history
    )
    add_undo(commands.add_parser("undo", parents=[common], help="take such a change back"), _undo)
    add_audit(commands.add_parser("audit", parents=[common], help="what was decided about actions"), _audit)

    add_crises(commands.add_parser("crises", parents=[common], help="records of crisis responses"), _crises)

    add_store(commands.add_parser("store", help="move the store to Postgres, or back"), common)

    _add_models(commands.add_parser("models", help="the bundled models' files"), common)

    plugins = commands.add_parser("plugins", help="the installed plug-ins, and why one is left out")
    plugins.set_defaults(run=_plugins)

    _add_graph(commands.add_parser("graph", help="look at the graphs"), common)
    add_workflow(commands.add_parser("workflow", help="check, draw and run workflow documents"), common)
    return parser


def _add_init(init: argparse.ArgumentParser) -> None:
    init.add_argument(
        "--config", metavar="FILE", type=Path, default=Path("parlour.toml"), help="the file to write"
    )
    init.add_argument(
        "--channel",
        metavar="NAME",
        action="append",
        default=[],
        help="a channel, such as web; may be repeated",
    )
    init.add_argument(
        "--token",
        metavar="[CHANNEL[.KEY]=]REFERENCE",
        action="append",
        default=[],
        help="where a channel's token is, as env:NAME or file:PATH; may be repeated",
    )
    init.add_argument("--model", metavar="NAME", help="the language model: local, or its LiteLLM name")
    init.add_argument("--api-key", metavar="REFERENCE", help="where its key is, as env:NAME or file:PATH")
    init.add_argument("--api-base", metavar="URL", help="the address of its API")
    init.add_argument("--unchecked", action="store_true", help="do not test the tokens and the model")
    init.add_argument("--replace", action="store_true", help="replace a file that exists; a copy is kept")
    init.add_argument("--no-input", action="store_true", help="ask nothing, as without a terminal")
    init.add_argument("--slack-manifest", action="store_true", help="print the manifest of the Slack app")
    init.set_defaults(run=_init)


def _add_feedback(feedback: argparse.ArgumentParser) -> None:
    feedback.add_argument("--since", metavar="TIME", help="from then on: 7d, 12h, or a date like 2026-11-24")
    feedback.add_argument("--json", action="store_true", help="one JSON object in each line")
    feedback.set_defaults(run=_feedback)


def _add_models(models: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = models.add_subparsers(title="actions", required=True, metavar="ACTION")
    for name, words in (
        ("list", "which models there are, and which are here"),
        ("get", "fetch the missing ones"),
        ("verify", "check every file against its SHA-256"),
    ):
        action = actions.add_parser(name, parents=[common], help=words)
        if name == "get":
            action.add_argument(
                "ids",
                nargs="*",
                metavar="MODEL",
                help="only these (default: all but the optional ones, which `parlour models list` marks)",
            )
        action.set_defaults(run=_models, action=name)


def _add_graph(graph: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = graph.add_subparsers(title="actions", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="a graph as a mermaid picture; without a name, which there are")
    show.add_argument("graph", nargs="?", metavar="NAME_OR_FILE", help="an installed graph, or a JSON file")
    show.add_argument("--json", action="store_true", help="print the graph document instead of the picture")
    show.set_defaults(run=_graph_show)
    run = actions.add_parser(
        "run", parents=[common], help="talk to a graph in this terminal, and print what each run did"
    )
    run.add_argument("graph", metavar="NAME_OR_FILE", help="an installed graph, or a JSON document")
    run.add_argument("message", nargs="?", metavar="MESSAGE", help="send only this, and end")
    run.set_defaults(run=_graph_run)
    traced = actions.add_parser(
        "trace", parents=[common], help="what a run did, drawn on its graph; without a run, the newest"
    )
    traced.add_argument("run_id", nargs="?", metavar="RUN", help="a run's id, as in the log")
    traced.add_argument(
        "--graph", metavar="FILE", help="the run's graph document or saved:NAME@VERSION, if it is not found"
    )
    traced.set_defaults(run=_graph_trace)


def _common() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--config", metavar="FILE", type=Path, help="the configuration file")
    common.add_argument(
        "--set",
        dest="overrides",
        metavar="SECTION.KEY=VALUE",
        action="append",
        default=[],
        help="override one setting; may be repeated",
    )
    return common


def _serve(options: argparse.Namespace) -> int:
    from gateway.cli.serve import serve

    return serve(options.config, options.overrides)


def _add_sent_files(chat: argparse.ArgumentParser) -> None:
    chat.add_argument("--voice", metavar="FILE", type=Path, help="send this recording first")
    words = "send this file with the first line; may be given several times"
    chat.add_argument("--file", metavar="FILE", type=Path, action="append", help=words)


def _chat(options: argparse.Namespace) -> int:
    from gateway.cli.chat import NamedFiles, chat

    voice = (options.voice,) if options.voice is not None else ()
    sent = NamedFiles(voice=voice, files=tuple(options.file or ()))
    return chat(options.config, options.overrides, sent)


def _init(options: argparse.Namespace) -> int:
    if options.slack_manifest:
        from gateway.cli.init.platforms import slack_manifest

        sys.stdout.write(slack_manifest())
        return OK
    from gateway.cli.init.command import Choices, init
    from gateway.cli.init.given import Given
    from gateway.cli.init.terminal import RealTerminal
    from gateway.config import environment

    given = Given.of(
        channels=options.channel,
        tokens=options.token,
        model=options.model,
        api_key=options.api_key,
        api_base=options.api_base,
    )
    choices = Choices(
        file=options.config,
        interactive=sys.stdin.isatty() and not options.no_input,
        tested=not options.unchecked,
        replace=options.replace,
    )
    return init(choices, given, RealTerminal(), environment())


def _link(options: argparse.Namespace) -> int:
    from gateway.cli.sign_in_link import print_link
    from gateway.config import environment, load

    sys.stdout.write(print_link(load(options.config, environment(), options.overrides)))
    return OK


def _doctor(options: argparse.Namespace) -> int:
    from gateway.cli.doctor import doctor

    return doctor(options.config, options.overrides)


def _check_config(options: argparse.Namespace) -> int:
    from gateway.app.embedded_model import embedded_model
    from gateway.config import check_config, environment
    from gateway.runtime.crash_labels import LABELS

    return check_config(
        options.config,
        environment(),
        options.overrides,
        sys.stdout.write,
        labels=LABELS,
        embedded=lambda settings: embedded_model(settings).words(),
    )


def _pair(options: argparse.Namespace) -> int:
    from gateway.cli.pair import list_pairings, pair, remove_pairing
    from gateway.cli.stored_books import store_place
    from gateway.config import environment, load

    settings = load(options.config, environment(), options.overrides, secrets=False)
    if settings.storage.kind == "memory":
        raise ConfigurationError(
            "storage.kind: in memory no one can be paired from outside; "
            'use "sqlite", or let people in with allow in the channel\'s section'
        )
    place = store_place(settings, "pairings")
    if options.remove is not None:
        return remove_pairing(place, *options.remove)
    if options.code is None:
        return list_pairings(place)
    return pair(place, options.code, confirmed=options.yes)


def _people(options: argparse.Namespace) -> int:
    from gateway.cli.people_actions import run_people

    return run_people(options)


def _jobs(options: argparse.Namespace) -> int:
    from gateway.cli.jobs import drop_job, list_jobs, retry_job

    place = _place(options, "jobs")
    if options.action == "list":
        return list_jobs(place)
    if options.id is None:
        raise ConfigurationError(f"jobs {options.action}: the ID is missing; `parlour jobs` lists them")
    return (retry_job if options.action == "retry" else drop_job)(place, options.id)


def _feedback(options: argparse.Namespace) -> int:
    from gateway.cli.feedback import list_feedback

    return list_feedback(_place(options, "feedback"), options.since, as_json=options.json)


def _history(options: argparse.Namespace) -> int:
    from gateway.cli.file_history import list_changes, verify_copies

    place = _place(options, "changes of files")
    return verify_copies(place) if options.verify else list_changes(place, options.file)


def _undo(options: argparse.Namespace) -> int:
    from gateway.cli.file_history import undo_change

    return undo_change(_place(options, "changes of files"), options.id)


def _place(options: argparse.Namespace, what: str) -> StorePlace:
    """Where the store is that another process can use. Raises ConfigurationError."""
    from gateway.cli.stored_books import store_place
    from gateway.config import environment, load

    return store_place(load(options.config, environment(), options.overrides, secrets=False), what)


def _audit(options: argparse.Namespace) -> int:
    from gateway.cli.audit import run_audit

    return run_audit(options)


def _crises(options: argparse.Namespace) -> int:
    from gateway.cli.crises import run_crises

    return run_crises(options)


def _models(options: argparse.Namespace) -> int:
    from gateway.cli.models import models_get, models_list, models_verify
    from gateway.config import environment, load

    models_dir = load(options.config, environment(), options.overrides, secrets=False).models_path
    if options.action == "get":
        return models_get(models_dir, tuple(options.ids))
    return models_list(models_dir) if options.action == "list" else models_verify(models_dir)


def _plugins(_options: argparse.Namespace) -> int:
    from gateway.cli.plugins import list_plugins

    return list_plugins()


def _graph_show(options: argparse.Namespace) -> int:
    from gateway.cli.graph import graph_list, graph_show

    return graph_list() if options.graph is None else graph_show(options.graph, as_json=options.json)


def _graph_trace(options: argparse.Namespace) -> int:
    from gateway.cli.trace import run_trace

    return run_trace(options)


def _graph_run(options: argparse.Namespace) -> int:
    from gateway.cli.graph_run import graph_run

    return graph_run(options.config, options.overrides, options.graph, options.message)


def _complain(line: str) -> None:
    sys.stderr.write(f"parlour: {line}\n")


if __name__ == "__main__":
    sys.exit(main())
