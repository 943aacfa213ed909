"""The bounds of what is unpacked, whatever the file says about its sizes."""

from __future__ import annotations

import io
import random
import zipfile

import pytest

from gateway.reading import zip_contents
from gateway.reading.failures import ReadingFailed
from gateway.reading.zip_contents import ZipContents
from tests.gateway.reading.files import packed


def failed(contents: ZipContents, name: str) -> str:
    with pytest.raises(ReadingFailed) as caught:
        contents.read(name)
    return caught.value.name


def test_a_member_is_read_by_its_name_and_a_missing_one_is_empty() -> None:
    contents = ZipContents(packed({"a": "one", "b/c": b"two"}))
    assert (contents.read("a"), contents.read("b/c"), contents.read("d")) == (b"one", b"two", b"")
    assert contents.names == {"a", "b/c"}


def test_members_that_are_too_large_alone_or_together_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_contents, "MAX_MEMBER_BYTES", 100_000)
    monkeypatch.setattr(zip_contents, "MAX_TOTAL_BYTES", 150_000)
    noise = random.Random(1).randbytes(90_000)
    contents = ZipContents(packed({"a": noise, "b": noise, "c": noise + noise, "d": b"small"}))
    assert failed(contents, "c") == "unpacks_too_large"
    assert contents.read("a") == noise
    assert failed(contents, "b") == "unpacks_too_large"
    assert contents.read("d") == b"small"


def test_a_member_that_unpacks_to_three_hundred_times_its_size_is_not_read() -> None:
    contents = ZipContents(packed({"bomb": bytes(3_000_000), "small": bytes(900_000)}))
    assert failed(contents, "bomb") == "unpacks_too_large"
    assert contents.read("small") == bytes(900_000)


def test_an_unusual_compression_is_not_unpacked() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"text")
    assert failed(ZipContents(target.getvalue()), "a") == "document_damaged"
