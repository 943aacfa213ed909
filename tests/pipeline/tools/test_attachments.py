"""The tool that reads attached documents page by page: which file is meant, and what it says of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.domain.files import FileGone, StoredFile
from pipeline.domain.messages import MediaKind
from pipeline.domain.readings import DocumentText, FileUnreadable
from pipeline.runtime.scope import TurnScope
from pipeline.shield.policy_book import PolicyBook
from pipeline.tools.attachments import ATTACHMENTS, attachments_group
from pipeline.tools.tool import ToolFailed, ToolOutput
from tests.support.contexts import scope
from tests.support.shields import shield
from tests.support.tool_gate import call, gate, group, propose, tool


def file(number: int, name: str, kind: MediaKind = "file") -> StoredFile:
    return StoredFile(id=f"{number:064x}", kind=kind, mime="", size=1, name=name)


class Files:
    """Two reports and a photo, the newest first."""

    known: tuple[StoredFile, ...] = (
        file(1, "report.pdf"),
        file(2, "cat.png", "image"),
        file(3, "Plan 2027.docx"),
        file(4, "report.pdf"),
    )
    problem: Exception | None = None

    async def newest(self, _scope: TurnScope) -> Sequence[StoredFile]:
        return self.known

    async def document(self, _scope: TurnScope, wanted: StoredFile) -> DocumentText:
        if self.problem is not None:
            raise self.problem
        return DocumentText(kind="pdf", pages=(f"first of {int(wanted.id, 16)}", " "))


async def read(files: Files, wanted: str, page: int | None = None) -> ToolOutput:
    (tool,) = attachments_group(files).fixed
    arguments = {"file": wanted} | ({} if page is None else {"page": page})
    return await tool.run(arguments, scope())


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("report.pdf", 1), ("1", 1), ("4", 4), ("Plan 2027.docx", 3), ("plan", 3)],
)
async def test_a_file_is_found_by_its_name_its_number_or_a_part_of_its_name(wanted: str, found: int) -> None:
    result = await read(Files(), wanted)
    assert result.text == f"Page 1 of 2\n\nfirst of {found}"
    assert result.foreign == "an attached file"


async def test_a_page_without_text_says_so_and_a_page_that_is_not_there_is_refused() -> None:
    assert (await read(Files(), "1", 2)).text == "Page 2 of 2\n\n(This page has no text.)"
    with pytest.raises(ToolFailed, match=r"there is no page 3: the document has 2"):
        await read(Files(), "1", 3)


async def test_an_unknown_file_is_answered_with_the_list() -> None:
    with pytest.raises(ToolFailed, match=r'1\. \[Attached: file "report.pdf"\]\n2\. .*picture "cat.png"'):
        await read(Files(), "invoice")
    empty = Files()
    empty.known = ()
    with pytest.raises(ToolFailed, match="nothing was attached"):
        await read(empty, "1")


async def test_a_picture_has_no_pages() -> None:
    with pytest.raises(ToolFailed, match="reads documents only"):
        await read(Files(), "cat.png")


@pytest.mark.parametrize(
    "problem", [FileGone("the file is no longer stored"), FileUnreadable("It is locked.", reason="encrypted")]
)
async def test_a_file_that_is_gone_or_unreadable_is_reported_in_words(problem: Exception) -> None:
    files = Files()
    files.problem = problem
    with pytest.raises(ToolFailed, match=str(problem)):
        await read(files, "1")


async def test_the_tool_only_reads_so_it_runs_without_asking() -> None:
    (tool,) = attachments_group(Files()).fixed
    assert tool.reads_only


async def test_rules_for_a_name_hold_for_a_file_that_is_read_by_its_number(tmp_path: Path) -> None:
    policy, files = tmp_path / "policy.toml", Files()
    policy.write_text('[[deny]]\nname = "plans"\naction_types = ["*"]\npaths = ["**/plan*"]\n', "utf-8")
    files.known = (file(1, "passport.pdf"), *files.known)
    away = tool("search_web", lambda _arguments, _scope: read(files, "1"), reads_only=True)
    one = gate(attachments_group(files), group(away), judge=shield(policies=PolicyBook(policy)))
    search = call("search_web", {"text": "tea"}, call_id="s")
    by_number = [call("read_attachment", {"file": given}, call_id=given) for given in ("4", "2", "1")]
    results = await propose(
        one, *by_number[:2], search, by_number[2], search, scope=scope(), groups=(ATTACHMENTS, "test")
    )
    assert "the security policy does not let" in results[0].content
    assert [result.success for result in results] == [False, True, True, True, False]
    assert "has read something restricted" in results[-1].content
