"""Who is erased or exported: find a person by what an operator calls them, and the job of an erasure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from adapters.web.settings import ACCOUNT, CHANNEL
from gateway.storage.erasure import FULL_ERASURE as FULL_ERASURE  # noqa: PLC0414 - a part of this
from gateway.storage.erasure import PersonKeys
from gateway.storage.identities import Identity
from gateway.storage.jobs import NewJob
from gateway.storage.page_people import PagePerson
from pipeline.domain.errors import InvalidInput


def named_identity(name: str, people: Collection[PagePerson]) -> Identity | None:
    """The identity that `name` means: CHANNEL:ACCOUNT:USER, or the name of a person of the page; None if
    there is no person of that name. Raises InvalidInput for a text that is neither."""
    wanted = " ".join(name.split()).casefold()
    for one in people:
        if one.name.casefold() == wanted or one.id == name:
            return Identity(channel=CHANNEL, account=ACCOUNT, user=one.id)
    channel, colon, rest = name.partition(":")
    account, second, user = rest.partition(":")
    user = user.removeprefix("user:")
    if not colon:
        return None
    if not (channel and second and account and user):
        raise InvalidInput(f"people: {name} is not CHANNEL:ACCOUNT:USER, such as telegram:main:1001")
    return Identity(channel=channel, account=account, user=user)


def erasure_job(person: PersonKeys, now: float) -> NewJob:
    """The job that erases the person."""
    identities = [[one.channel, one.account, one.user] for one in person.identities]
    body = {"identities": identities, "keys": list(person.keys)}
    return NewJob(kind=FULL_ERASURE, key=person.identities[0].key, due=now, body=body)


def erased_person(body: Mapping[str, Any]) -> PersonKeys:
    """Whom the job with that body erases."""
    identities = [
        Identity(channel=channel, account=account, user=user) for channel, account, user in body["identities"]
    ]
    return PersonKeys(identities=tuple(identities), keys=tuple(body["keys"]))
