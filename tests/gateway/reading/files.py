"""Small valid files, made by hand, with the parts that a test names."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence

from PIL import Image, ImageDraw

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def photo(width: int = 320, height: int = 200) -> Image.Image:
    """A picture of many colours, darker at its left and at its top."""
    grey = Image.linear_gradient("L").resize((width, height))
    across = Image.linear_gradient("L").rotate(90).resize((width, height))
    return Image.merge("RGB", (grey, across, Image.effect_noise((width, height), 60)))


def screenshot(width: int = 320, height: int = 200) -> Image.Image:
    """A picture of few colours."""
    image = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(image).rectangle((10, 10, width // 2, height // 2), fill="navy")
    return image


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    target = io.BytesIO()
    image.save(target, form, **options)
    return target.getvalue()


def pdf(
    texts: Sequence[str], *, title: str = "", extra: Mapping[str, bytes] | None = None, packed: bool = False
) -> bytes:
    """A PDF with a page for each text; an empty text is a page with a drawing. `extra` adds entries to the
    catalogue."""
    count = len(texts)
    objects: list[bytes] = [b"", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for text in texts:
        lines = b"".join(b"(%s) Tj 0 -14 Td " % one.encode("latin-1") for one in text.split("\n"))
        drawing = b"BT /F 12 Tf 20 700 Td " + lines + b"ET" if text else b"0 0 50 50 re f"
        kids.append(len(objects) + 1)
        objects.append(_PAGE % (len(objects) + 2))
        objects.append(stream(drawing, packed=packed))
    objects.append(b"<</Title(%s)>>" % title.encode("latin-1"))
    added = b"".join(b"/%s %s" % (key.encode(), value) for key, value in (extra or {}).items())
    objects[0] = b"<</Type/Catalog/Pages 2 0 R%s>>" % added
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (count, b" ".join(b"%d 0 R" % one for one in kids))
    return pdf_of(objects, trailer=b"/Info %d 0 R" % len(objects))


def stream(data: bytes, *, packed: bool = False, entries: bytes = b"") -> bytes:
    """A PDF stream object."""
    if packed:
        data, entries = zlib.compress(data), entries + b"/Filter/FlateDecode"
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), entries, data)


def pdf_of(objects: Sequence[bytes], *, trailer: bytes = b"") -> bytes:
    """A PDF of numbered objects, the first of which is its catalogue."""
    target, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(target))
        target += b"%d 0 obj%s endobj\n" % (number, body)
    start = len(target)
    target += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    target += b"".join(b"%010d 00000 n \n" % place for place in places)
    target += b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (
        *(len(objects) + 1, trailer, start),
    )
    return bytes(target)


def encrypted_pdf() -> bytes:
    """A PDF that opens only with a password: the check value is that of another one."""
    check = hashlib.sha256(b"a password").hexdigest().encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 0/Kids[]>>",
        b"<</Filter/Standard/V 2/R 3/Length 128/P -44/O<%s>/U<%s>>>" % (check, check),
    ]
    key = hashlib.md5(b"id", usedforsecurity=False).hexdigest().encode()
    return pdf_of(objects, trailer=b"/Encrypt 3 0 R/ID[<%s><%s>]" % (key, key))


def packed(members: Mapping[str, bytes | str]) -> bytes:
    """A ZIP file."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def docx(body: str, *, title: str = "", more: Mapping[str, bytes | str] | None = None) -> bytes:
    """A Word document with the XML of its body."""
    members: dict[str, bytes | str] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations({"r1": ("officeDocument", "word/document.xml")}),
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
    }
    if title:
        members["docProps/core.xml"] = f'<p xmlns:dc="http://purl.org/dc/"><dc:title>{title}</dc:title></p>'
    return packed({**members, **(more or {})})


def paragraphs(*texts: str) -> str:
    """Paragraphs of a Word document."""
    return "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in texts)


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    """The part of an Office file that names other parts: by id, the kind and the target."""
    rows = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{RELATIONS}">{rows}</Relationships>'
