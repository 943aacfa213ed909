"""Documents: which text is read, in which pieces, and what is refused."""

from __future__ import annotations

import pytest

from gateway.reading.documents import read_document
from gateway.reading.failures import ReadingFailed, unreadable
from gateway.reading.limits import MAX_TEXT_CHARS, ReadingLimits
from gateway.reading.protocol import Extracted
from pipeline.domain.readings import DocumentKind
from tests.gateway.reading.files import (
    docx,
    encoded,
    encrypted_pdf,
    packed,
    paragraphs,
    pdf,
    relations,
    screenshot,
)

CONTAINER = '<c><rootfile full-path="book/b.opf"/></c>'
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"

_ENOUGH_S = 1_000_000
"""The reader counts the time of its process; here that is one with all the other tests."""


def read(content: bytes, *, name: str = "file", mime: str = "", pages: int = 300) -> Extracted:
    return read_document(
        content, name=name, mime=mime, limits=ReadingLimits(max_pages=pages, seconds=_ENOUGH_S)
    )


def refused(content: bytes) -> str:
    with pytest.raises(ReadingFailed) as caught:
        read(content)
    return str(unreadable(caught.value))


def test_a_pdf_is_its_pages_in_order() -> None:
    found = read(pdf(["First page\nwith two lines", "Second page"], title="A report"))
    assert found == Extracted(
        kind="pdf", pages=["First page\nwith two lines", "Second page"], title="A report"
    )
    assert read(pdf(["Grüße (aus) Köln".replace("(", "\\(").replace(")", "\\)")], packed=True)).pages == [
        "Grüße (aus) Köln"
    ]


def test_pages_that_are_pictures_are_counted() -> None:
    found = read(pdf(["Words", "", ""]))
    assert (list(found.pages), found.pictures, found.cut) == (["Words", "", ""], 2, False)


def test_a_long_pdf_is_cut_after_the_allowed_pages_and_says_how_many_there_are() -> None:
    found = read(pdf([f"Page {number}" for number in range(9)]), pages=4)
    assert list(found.pages) == ["Page 0", "Page 1", "Page 2", "Page 3"]
    assert (found.cut, found.all_pages) == (True, 9)


def test_a_pdf_that_takes_too_long_is_cut() -> None:
    found = read_document(pdf(["One", "Two"]), name="", mime="", limits=ReadingLimits(seconds=0))
    assert (list(found.pages), found.cut, found.all_pages) == (["One"], True, 2)


def test_a_page_that_is_too_long_is_cut() -> None:
    lines = "\n".join(["a line of text in a page that has too many of them"] * 2_500)
    found = read(pdf([lines, "Next"]))
    assert [len(page) > 90_000 for page in found.pages] == [True, False]
    assert (found.pages[1], found.cut, found.all_pages) == ("Next", True, 0)


def test_a_pdf_with_a_password_is_refused() -> None:
    assert refused(encrypted_pdf()) == (
        "The file needs a password, which I cannot enter. Please send it without one."
    )


def test_a_word_document_is_its_paragraphs_tables_and_notes() -> None:
    table = "<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>".format(
        paragraphs("Name"), paragraphs("Price")
    )
    more = {
        "word/_rels/document.xml.rels": relations({"n": ("footnotes", "footnotes.xml")}),
        "word/footnotes.xml": f"<f>{paragraphs('A footnote')}</f>".replace("w:", ""),
    }
    body = paragraphs("Dear Anna &amp; Ben,", "it works.") + table + paragraphs("Bye")
    found = read(docx(body, title="A  letter", more=more), name="letter.txt")
    assert found.kind == "docx"
    assert found.title == "A letter"
    assert list(found.pages) == ["Dear Anna & Ben,\n\nit works.\n\nName\tPrice\n\nBye\n\nA footnote"]


def test_deleted_text_and_field_codes_of_a_word_document_are_not_read() -> None:
    body = (
        "<w:p><w:r><w:t>Kept</w:t></w:r><w:del><w:r><w:delText>gone</w:delText><w:t>gone</w:t></w:r></w:del>"
        "<w:r><w:instrText> INCLUDEPICTURE http://127.0.0.1/ </w:instrText></w:r>"
        "<w:r><w:t>, and</w:t><w:tab/><w:t>more</w:t></w:r></w:p>"
    )
    assert list(read(docx(body)).pages) == ["Kept, and\tmore"]


def test_macros_are_ignored_and_counted() -> None:
    found = read(docx(paragraphs("Text"), more={"word/vbaProject.bin": b"\xd0\xcf\x11\xe0"}))
    assert (list(found.pages), found.macros) == (["Text"], True)


def test_a_presentation_is_its_slides_in_the_order_in_which_they_are_shown() -> None:
    slide = "<p:sld xmlns:p='p' xmlns:a='a'><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:sld>"
    show = '<p:p xmlns:p="p" xmlns:r="{}"><p:sldId id="256" r:id="r2"/><p:sldId id="257" r:id="r1"/></p:p>'
    found = read(
        packed(
            {
                "_rels/.rels": relations({"r1": ("officeDocument", "/ppt/presentation.xml")}),
                "ppt/presentation.xml": show.format(
                    "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
                ),
                "ppt/_rels/presentation.xml.rels": relations(
                    {"r1": ("slide", "slides/slide1.xml"), "r2": ("slide", "slides/slide2.xml")}
                ),
                "ppt/slides/slide1.xml": slide.format("The end"),
                "ppt/slides/slide2.xml": slide.format("The beginning"),
            }
        )
    )
    assert (found.kind, list(found.pages)) == ("pptx", ["The beginning", "The end"])


def workbook(rows: str, *, state: str = "visible") -> bytes:
    strings = (
        "<sst><si><t>Name</t></si><si><r><t>Two </t></r><r><t>parts</t></r><rPh><t>no</t></rPh></si></sst>"
    )
    styles = (
        '<s><numFmts><numFmt numFmtId="170" formatCode="dd.mm.yy"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/><xf numFmtId="22"/></cellXfs></s>'
    )
    book = (
        f'<w xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
        f'<sheet name="Prices" sheetId="1" r:id="r1" state="{state}"/></w>'
    )
    parts = {
        "r1": ("worksheet", "worksheets/sheet1.xml"),
        "r2": ("sharedStrings", "sharedStrings.xml"),
        "r3": ("styles", "styles.xml"),
    }
    return packed(
        {
            "_rels/.rels": relations({"r1": ("officeDocument", "xl/workbook.xml")}),
            "xl/workbook.xml": book,
            "xl/_rels/workbook.xml.rels": relations(parts),
            "xl/sharedStrings.xml": strings,
            "xl/styles.xml": styles,
            "xl/worksheets/sheet1.xml": f'<s xmlns="{SHEET}"><sheetData>{rows}</sheetData></s>',
        }
    )


def test_a_workbook_is_its_cells_with_dates_as_dates() -> None:
    rows = (
        '<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>'
        '<row><c r="A2"><v>1.5</v></c><c r="B2" s="1"><v>45000</v></c>'
        '<c r="C2" s="2"><v>45000.75</v></c></row>'
        '<row><c r="A3" t="b"><v>1</v></c><c r="B3" t="inlineStr"><is><t>in line</t></is></c>'
        '<c r="C3"><f>SUM(A1:A2)</f><v>7</v></c><c><f>A1 * 2</f></c></row>'
    )
    found = read(workbook(rows))
    assert found.kind == "xlsx"
    assert list(found.pages) == [
        "Sheet: Prices\nName\t\tTwo parts\n1.5\t2023-03-15\t2023-03-15 18:00:00\nTRUE\tin line\t7\t=A1 * 2"
    ]
    assert found.hidden == 0
    assert read(workbook(rows, state="veryHidden")).hidden == 1


def test_cells_far_to_the_right_are_left_out_and_the_workbook_counts_as_cut() -> None:
    found = read(workbook('<row><c r="B1"><v>1</v></c><c r="XFD1"><v>2</v></c></row>'))
    assert (list(found.pages), found.cut) == (["Sheet: Prices\n\t1"], True)


def test_pieces_of_a_long_table_repeat_its_heading() -> None:
    rows = "".join(f"<row><c><v>{number}</v></c><c><v>{'9' * 50}</v></c></row>" for number in range(200))
    head = '<row><c t="inlineStr"><is><t>Number</t></is></c></row>'
    found = read(workbook(head + rows))
    assert len(found.pages) > 2
    assert all(page.startswith("Sheet: Prices\nNumber\n") for page in found.pages)
    lines = [line for page in found.pages for line in page.split("\n")[2:]]
    assert [line.split("\t")[0] for line in lines] == [str(number) for number in range(200)]


def test_a_line_of_a_table_that_is_too_long_is_cut_into_pieces() -> None:
    found = read(b"a,b\n1," + b"x" * 10_000 + b"\n", name="long.csv")
    assert found.kind == "csv"
    assert all(page.startswith("a,b\n") and len(page) < 3_100 for page in found.pages)
    assert "".join(page.removeprefix("a,b\n") for page in found.pages) == "1," + "x" * 10_000


def open_document(kind: str, body: str) -> bytes:
    spaces = 'xmlns:text="t" xmlns:table="b" xmlns:draw="d" xmlns:office="o"'
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:doc {spaces}>{body}</office:doc>",
            "meta.xml": '<m xmlns:dc="dc"><dc:title>Title</dc:title></m>',
        }
    )


def test_open_documents_are_read() -> None:
    text = read(
        open_document(
            "text",
            "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
            "<text:h>Heading</text:h><text:p>One<text:s text:c='3'/>two<text:line-break/>three</text:p>",
        )
    )
    assert (text.kind, list(text.pages), text.title) == ("odt", ["Heading\n\nOne   two\nthree"], "Title")
    slides = read(
        open_document(
            "presentation",
            "<draw:page><text:p>First</text:p></draw:page><draw:page><text:p>Second</text:p></draw:page>",
        )
    )
    assert (slides.kind, list(slides.pages)) == ("odp", ["First", "Second"])
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    row = f"<table:table-row>{cell.format('A1')}{cell.format('B1')}</table:table-row>"
    sheet = f"<table:table table:name='a'>{row}</table:table>"
    sheets = read(open_document("spreadsheet", sheet + sheet))
    assert (sheets.kind, list(sheets.pages)) == ("ods", ["A1\tB1", "A1\tB1"])


def test_an_e_book_is_its_chapters_in_order() -> None:
    book = packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "book/b.opf": '<p xmlns:dc="dc"><dc:title>A tale</dc:title><item id="b" href="b.html"/>'
            '<item id="a" href="a%20a.html"/><itemref idref="a"/><itemref idref="b"/></p>',
            "book/a a.html": "<html><head><title>x</title></head><body><p>Once upon a time",
            "book/b.html": "<html><body><script>bad()</script><p>The end</p></body></html>",
        }
    )
    found = read(book)
    assert (found.kind, found.title, list(found.pages)) == ("epub", "A tale", ["Once upon a time\n\nThe end"])
    assert read_document(book, name="", mime="", limits=ReadingLimits(seconds=0)).cut


def test_rich_text_is_read_without_its_hidden_groups() -> None:
    found = read(
        rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}}{\*\generator X}Caf\'e9 \u8364?5\par "
        rb"{\field{\*\fldinst HYPERLINK http://127.0.0.1/}{\fldrslt link}}\tab\{x\}}"
    )
    assert (found.kind, list(found.pages)) == ("rtf", ["Cafй €5\n\nlink\t{x}"])


def test_a_page_of_html_is_its_visible_text() -> None:
    html = b"<!-- saved --><!DOCTYPE html><title>A  page</title><script>x()</script><p>Hello<p>world"
    found = read(html, name="page.txt", mime="text/plain")
    assert (found.kind, found.title, list(found.pages)) == ("html", "A page", ["Hello\nworld"])


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (b"a,b\n1,2\n", "prices.csv", "csv"),
        ("Grüße;zwei\nö;ä".encode("cp1252"), "PRICES.CSV", "csv"),
        (b"a,b,c,d\n1,2,3,4\n5,6,7,8\n", "unnamed", "csv"),
        (b"a,b\n1,2\n", "prices.txt", "text"),
        (b"Well, yes\nOr, no, or\n", "prices.csv", "text"),
        (b'{"a": 1}', "data.json", "text"),
        (b"print('hello')\n", "code.py", "text"),
        (
            b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
            "x.svg",
            "text",
        ),
    ],
)
def test_the_kind_of_a_text_depends_on_its_content(content: bytes, name: str, kind: DocumentKind) -> None:
    assert read(content, name=name).kind == kind


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_texts_in_common_encodings_are_read(encoding: str) -> None:
    text = "Die Straße führt über die Brücke. Größe, Übung und Äpfel gehören dazu, schön für müde Füße."
    assert list(read(text.encode(encoding)).pages) == [text]


def test_a_russian_text_in_an_old_encoding_is_read() -> None:
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний."
    assert list(read(text.encode("cp1251")).pages) == [text]


def test_a_long_text_is_cut_into_pieces_between_paragraphs_and_nothing_is_lost() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 80 for number in range(60))
    found = read(text.encode())
    assert not found.cut
    assert all(1_500 <= len(page) <= 3_000 for page in found.pages[:-1])
    assert all(page.startswith("Paragraph") for page in found.pages)
    assert " ".join(" ".join(found.pages).split()) == " ".join(text.split())
    unbroken = read(b"x" * 7_000)
    assert [len(page) for page in unbroken.pages] == [3_000, 3_000, 1_000]


def test_the_indentation_of_code_is_kept() -> None:
    code = "    if indented:\n        pass\n"
    assert list(read(code.encode()).pages) == ["    if indented:\n        pass"]


def test_a_text_beyond_the_limits_is_cut() -> None:
    assert read(b"word " * (MAX_TEXT_CHARS // 4)).cut
    short = read(b"word " * 3_000, pages=2)
    assert (len(short.pages), short.cut) == (2, True)


def test_invisible_characters_are_removed() -> None:
    assert list(read("vis\u200bible \u202etxet\u202c".encode()).pages) == ["visible txet"]


def test_other_files_are_refused_with_what_to_do() -> None:
    assert refused(packed({"a.txt": "a"})) == (
        "I do not open archives. Please send the files in it one by one."
    )
    assert refused(b"\x1f\x8b\x08\0more").startswith("I do not open archives.")
    assert refused(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)).startswith(
        "I cannot read the old formats of Office"
    )
    locked = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(60) + "EncryptedPackage".encode("utf-16-le")
    assert refused(locked).startswith("The file needs a password")
    assert refused(encoded(screenshot(), "PNG")).startswith("The file is a picture")
    assert refused(b"\x7fELF\x02\x01\x01" + bytes(300)) == (
        "I cannot read this kind of file. I read PDF, Word (.docx), PowerPoint (.pptx), Excel (.xlsx), "
        "OpenDocument, EPUB, RTF, HTML, CSV and plain text."
    )
