"""`parlour init`: from the questions or the options to the written files, and what to do next.

Nothing is written before the last question is answered, and then everything or nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gateway.app.embedded_model import embedded_model
from gateway.cli.init.checks import PlatformChecks, bot_name
from gateway.cli.init.files import NewFile, copy_name, write_all
from gateway.cli.init.given import Given
from gateway.cli.init.plan import LOCAL, ChannelPlan, ModelPlan, Plan, toml_text
from gateway.cli.init.platforms import WEB, asked_secrets, asked_values, is_required, next_steps
from gateway.cli.init.questions import Questions, failures, shown
from gateway.cli.init.terminal import Terminal, confirmed
from gateway.config import ConfigurationProblems, load
from gateway.config.environment import DEFAULT_FILE
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass

DONE, NOTHING_WRITTEN, INTERRUPTED = 0, 1, 130
_FILE_MODE, _SECRET_MODE = 0o644, 0o600
_WHO_MAY_SPEAK = (
    "Who may speak: no one yet. A stranger who writes to the bot in private is shown a code, and "
    "`parlour pair CODE`\nadmits them. The web page and the terminal are yours alone."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """How the command runs."""

    file: Path
    """The parlour.toml to write."""
    interactive: bool
    """Whether questions may be asked."""
    tested: bool = True
    """Whether tokens and the model are tested."""
    replace: bool = False
    """Whether a file that exists may be replaced without a question."""


def init(
    choices: Choices, given: Given, terminal: Terminal, environ: Mapping[str, str], clock: Clock | None = None
) -> int:
    """Run the command. Exit code 0: written; 1: nothing is written; 130: interrupted, and nothing is written.

    Raises ConfigurationError for options that do not say enough without questions.
    """
    try:
        plan = _plan(
            choices, given, terminal, PlatformChecks(choices.file.parent, environ, clock or SystemClock())
        )
        if plan is None:
            return NOTHING_WRITTEN
        copies = _written(plan)
    except (KeyboardInterrupt, EOFError):
        terminal.say("\nInterrupted. Nothing is written.")
        return INTERRUPTED
    _report(plan, copies, terminal, environ)
    return DONE


def _plan(choices: Choices, given: Given, terminal: Terminal, checks: PlatformChecks) -> Plan | None:
    """What to write, by the person's answers or the options; None if nothing is to be written."""
    file, tests = choices.file, checks if choices.tested else None
    if os.path.lexists(file) and not _may_replace(choices, terminal):
        return None
    if not choices.interactive:
        return _checked(_planned(file, given), tests, terminal)
    terminal.say(
        f"This writes {file} and the folder secrets/ beside it. Ctrl-C leaves everything as it is.\n"
    )
    return _asked(file, Questions(terminal, given, tests, file.parent))


def _written(plan: Plan) -> tuple[Path, ...]:
    """Write the plan; the copies of the files that were replaced. Raises ConfigurationError."""
    try:
        return write_all(list(_files(plan)))
    except OSError as error:
        raise ConfigurationError(
            f"{error.filename or plan.file}: cannot be written ({error.strerror}); nothing is changed"
        ) from error


def _report(plan: Plan, copies: Iterable[Path], terminal: Terminal, environ: Mapping[str, str]) -> None:
    """What was written, and what to do next."""
    terminal.say(f"\nWritten: {plan.file}")
    for secret in plan.secrets():
        terminal.say(f"  {secret.path} is in {secret.reference.removeprefix('file:')}")
    for copy in copies:
        terminal.say(f"  the earlier file is kept as {copy}")
    if plan.channels:
        terminal.say(f"\n{_WHO_MAY_SPEAK}")
    for problem in _problems(plan.file, environ):
        terminal.say(f"BAD  {problem}")
    terminal.say("\nNext:")
    for number, step in enumerate(_next(plan, environ), start=1):
        terminal.say(f"  {number}. {step}")


def _may_replace(choices: Choices, terminal: Terminal) -> bool:
    if choices.replace:
        return True
    kept = copy_name(choices.file).name
    if choices.interactive and confirmed(
        terminal, f"{choices.file} exists. Replace it? The present one is kept as {kept}."
    ):
        return True
    more = "" if choices.interactive else f" With --replace it is replaced, and kept as {kept}."
    terminal.say(f"{choices.file} exists: nothing is changed.{more}")
    return False


def _asked(file: Path, questions: Questions) -> Plan:
    names = questions.channels()
    asked = (questions.channel(name) for name in names if name != WEB)
    channels = tuple(one for one in asked if one is not None)
    return Plan(file=file, web=WEB in names, channels=channels, model=questions.model())


def _planned(file: Path, given: Given) -> Plan:
    """What the options say. Raises ConfigurationError that names a missing option."""
    names = given.channels or (WEB,)
    channels = []
    for name in names:
        if name == WEB:
            continue
        if asked_values(name):
            keys = ", ".join(asked_values(name))
            raise ConfigurationError(
                f"channels.{name} needs {keys}: run `parlour init` in a terminal, which asks"
            )
        paths = {key: f"channels.{name}.{key}" for key in asked_secrets(name)}
        missing = [key for key, path in paths.items() if is_required(name, key) and path not in given.secrets]
        if missing:
            raise ConfigurationError(
                f"channels.{name}.{missing[0]} is missing: add --token {name}.{missing[0]}=file:PATH, or run "
                "`parlour init` in a terminal, which asks for it"
            )
        secrets = tuple(given.secrets[path] for path in paths.values() if path in given.secrets)
        channels.append(ChannelPlan(name=name, secrets=secrets))
    return Plan(file=file, web=WEB in names, channels=tuple(channels), model=given.model or ModelPlan())


def _checked(plan: Plan, checks: PlatformChecks | None, terminal: Terminal) -> Plan | None:
    """The plan with the bots' names; None if a test failed."""
    if checks is None:
        return plan
    channels, failed = [], 0
    parts: tuple[ChannelPlan | ModelPlan, ...] = (*plan.channels, plan.model)
    for part in parts:
        findings = asyncio.run(checks.of(part))
        for finding in findings:
            terminal.say(shown(finding))
        failed += len(failures(findings))
        if isinstance(part, ChannelPlan):
            channels.append(replace(part, bot=bot_name(findings)))
    if failed:
        terminal.say("Nothing is written. Correct what is BAD, or add --unchecked to write it as it is.")
        return None
    return replace(plan, channels=tuple(channels))


def _files(plan: Plan) -> Iterator[NewFile]:
    """The secrets first, so that parlour.toml never names a file that is not there."""
    folder = plan.file.parent
    for secret in plan.secrets():
        if secret.value is not None:
            path = folder / secret.reference.removeprefix("file:")
            yield NewFile(path=path, text=f"{secret.value}\n", mode=_SECRET_MODE)
    yield NewFile(path=plan.file, text=toml_text(plan), mode=_FILE_MODE)


def _problems(file: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What `parlour check-config` would say."""
    try:
        load(file, environ, [])
    except ConfigurationProblems as error:
        return tuple(str(problem) for problem in error.problems)
    return ()


def _next(plan: Plan, environ: Mapping[str, str]) -> Iterator[str]:
    """What to do now, one step after the other."""
    option = "" if plan.file == DEFAULT_FILE else f" --config {plan.file}"
    if plan.model.model == LOCAL and not _has_model(plan.file, environ):
        yield f"parlour models get{option}   fetches the models for answers and voice notes (640 MB)."
    page = " It prints the link to the page." if plan.web else ""
    yield f"parlour serve{option}   starts the gateway.{page}"
    for channel in plan.channels:
        for step in next_steps(channel):
            yield f"{channel.name.capitalize()}: {step}"
    if plan.channels:
        yield f"parlour pair CODE{option}   in another terminal, admits you: then the bot answers you."
    yield f"parlour doctor{option}   tests everything, and says what to do where something is wrong."


def _has_model(file: Path, environ: Mapping[str, str]) -> bool:
    try:
        return embedded_model(load(file, environ, [], secrets=False)).path.is_file()
    except ConfigurationProblems:
        return False
