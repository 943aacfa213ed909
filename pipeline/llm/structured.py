"""Get a structured answer: a JSON object of a given form, which is checked.

Not here: making the model keep to the form, which the client does where it can (`LlmRequest.schema`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NoReturn

from pipeline.domain.chat import ChatMessage
from pipeline.domain.errors import ModelError
from pipeline.domain.json_schema import JsonSchema, SchemaMismatch, check_value

Ask = Callable[[tuple[ChatMessage, ...]], Awaitable[str]]
"""One call of the model with these messages and the schema: the text of its answer, empty if it failed."""
MAX_ANSWER_CHARS = 20_000
_AGAIN = (
    "That answer cannot be used: {why}. Answer again with one JSON object and nothing else. Its form, as a "
    "JSON schema: {schema}"
)
_NO_OBJECT = "it holds no JSON object"


class AnswerUnreadable(ModelError):
    """The model gave no answer of the asked form. `answer` is its first one."""

    code = "model_answer_unreadable"
    permanent = False

    def __init__(self, message: str, *, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


async def structured(
    messages: Sequence[ChatMessage], schema: JsonSchema, ask: Ask, *, again: bool = True
) -> dict[str, Any]:
    """The first object in the model's answer that fits `schema`. Text around it, such as a fence, is ignored.

    With `again`, the model is asked once more, with the reason, where its answer has none. Raises
    AnswerUnreadable after that, at once where the call itself failed, and what `ask` raises.
    """
    answer = await ask(tuple(messages))
    found, why = read_object(answer, schema)
    if found is None and answer and again:
        reason = _AGAIN.format(why=why, schema=json.dumps(schema.schema, ensure_ascii=False))
        said = ChatMessage(role="assistant", content=answer[:MAX_ANSWER_CHARS])
        second = await ask((*messages, said, ChatMessage(role="user", content=reason)))
        found, why = read_object(second, schema)
    if found is None:
        raise AnswerUnreadable(
            f"The model's answer does not have the form {schema.name}: {why}", answer=answer
        )
    return found


def read_object(text: str, schema: JsonSchema) -> tuple[dict[str, Any] | None, str]:
    """The first JSON object in `text` that fits `schema`; None, and why the first one does not, if there is
    none."""
    why = ""
    for value in _objects(text[:MAX_ANSWER_CHARS]):
        try:
            check_value(schema.schema, value)
        except SchemaMismatch as error:
            why = why or str(error)
        else:
            return value, ""
    return None, why or _NO_OBJECT


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in `text` that are in no other one, in order."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    at = text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except RecursionError:
            return
        except ValueError:
            end = at + 1
        else:
            yield found
        at = text.find("{", end)
