"""The settings of the web search: [tools.search]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from gateway.config.secrets import SecretRef
from gateway.config.section import Section, setting
from gateway.config.value_checks import check_search_url


class SearchSettings(Section):
    """[tools.search]: how the assistant searches the web."""

    backend: Literal["auto", "none", "ddgs", "searxng", "brave"] = setting(
        "auto",
        "The search engine. ddgs needs no key: it queries DuckDuckGo, Brave and Mojeek, and comes with "
        "`pip install 'parlour[search]'`. searxng is a server at tools.search.url, brave an API that needs "
        "tools.search.api_key. auto: ddgs if it is installed, else none.",
    )
    url: Annotated[str | None, AfterValidator(check_search_url)] = setting(
        None,
        "The address of the SearXNG server; with brave, of a server that has Brave's API.",
        example="http://127.0.0.1:8888",
        expected="an address that starts with http:// or https://",
    )
    api_key: SecretRef | None = setting(
        None, "The key for Brave's search API, by reference.", example="env:BRAVE_API_KEY"
    )
    per_hour: int = setting(30, "Searches of one person in an hour. 0 sets no limit.", ge=0, le=10_000)
