"""Decode a picture, scale it down and encode it again. Runs in the reading process only.

The result has no metadata, is the right way up, and has no transparency: it lies on white. It is a PNG
where the picture has few colours, as screenshots of text and diagrams have, and a JPEG otherwise.
"""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator
from typing import Literal

from PIL import AvifImagePlugin, Image

from gateway.reading.failures import ReadingFailed
from gateway.reading.limits import MAX_PIXELS
from gateway.reading.signatures import PictureFormat, is_heic, picture_format
from pipeline.domain.readings import Picture

Image.MAX_IMAGE_PIXELS = None
"""The library's own limit has no numbers in its error; `_checked_size` has."""
_PNG_COLOURS = 1_024
"""Up to this many colours in the file's picture, the result is a PNG if that fits."""
_QUALITIES = (85, 70, 50)
_SMALLER = 0.7
_SMALLEST_SIDE = 16
_DEEP = ("I;16", "I;16L", "I;16B", "I;16N")
"""The modes of grey in 16 bits."""
_ORIENTATION = 0x0112
_TURNED = frozenset({5, 6, 7, 8})
"""The EXIF orientations that exchange width and height."""


def prepare() -> None:
    """Load everything that a picture can need: afterwards no file can be opened."""
    warnings.simplefilter("ignore")  # damaged files warn often; standard error is closed to the copies anyway
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # in the sandbox no thread can be started
    Image.init()
    for form in ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"):
        sample = io.BytesIO()
        Image.new("RGB", (16, 16), "red").save(sample, form)
        read_picture(sample.getvalue(), max_side=8, max_bytes=10_000)


def read_picture(content: bytes, *, max_side: int, max_bytes: int) -> Picture:
    """See `pipeline.domain.readings.FileReader.picture`. Raises ReadingFailed, MemoryError."""
    form = picture_format(content)
    if form is None:
        raise ReadingFailed("heic" if is_heic(content) else "no_picture")
    try:
        return _read(content, form, max_side, max_bytes)
    except (ReadingFailed, MemoryError):
        raise
    except Exception as error:
        # Damaged files make the decoders raise OSError, SyntaxError, struct.error, ValueError and more.
        raise ReadingFailed("picture_damaged") from error


def _read(content: bytes, form: PictureFormat, max_side: int, max_bytes: int) -> Picture:
    with Image.open(io.BytesIO(content), formats=[form]) as opened:
        width, height = _checked_size(opened)
        target = _fitted(width, height, max_side)
        animated = _is_animated(opened, form)
        if form == "JPEG":
            # Decodes at a half, a quarter or an eighth where that is still at least as large as the result.
            opened.draft("RGB", target)
        opened.seek(0)
        opened.load()
        orientation = _orientation(opened)
        if orientation in _TURNED:
            width, height = height, width
        bands = _with_bands(opened)
        few_colours = form != "JPEG" and bands.getcolors(_PNG_COLOURS) is not None
        scaled = _upright(_flat(_resized(bands, target)), orientation)
        del bands
    for side in _sides(max(scaled.size)):
        smaller = _resized(scaled, _fitted(*scaled.size, side))
        for mime, encoded in _encodings(smaller, few_colours=few_colours):
            if len(encoded) <= max_bytes:
                return Picture(
                    content=encoded,
                    mime=mime,
                    width=smaller.width,
                    height=smaller.height,
                    original_width=width,
                    original_height=height,
                    animated=animated,
                )
    raise ReadingFailed("picture_too_detailed")


def _checked_size(opened: Image.Image) -> tuple[int, int]:
    width, height = opened.size
    if width * height > MAX_PIXELS:
        raise ReadingFailed("too_many_pixels", width=width, height=height, most=MAX_PIXELS // 1_000_000)
    if width < 1 or height < 1:
        raise ReadingFailed("picture_damaged")
    return width, height


def _is_animated(opened: Image.Image, form: PictureFormat) -> bool:
    """Whether there are more frames; False for a photo with a second picture in it, as phones make them."""
    if form == "JPEG":
        return False
    try:
        return bool(getattr(opened, "is_animated", False))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - any error of a damaged second frame; the first may be whole
        return False


def _orientation(opened: Image.Image) -> int:
    try:
        return int(opened.getexif().get(_ORIENTATION, 1))
    except MemoryError:
        raise
    except (OSError, SyntaxError, TypeError, ValueError, KeyError, IndexError, OverflowError, struct.error):
        return 1  # the metadata is damaged, the picture need not be


def _with_bands(image: Image.Image) -> Image.Image:
    """The picture as grey or RGB, with its transparency if it has any: palettes cannot be scaled."""
    if image.mode in ("I", "F", *_DEEP):
        return _in_bytes(image)
    if image.has_transparency_data:
        return image if image.mode == "RGBA" else image.convert("RGBA")
    wanted = "L" if image.mode in ("1", "L") else "RGB"
    return image if image.mode == wanted else image.convert(wanted)


def _flat(image: Image.Image) -> Image.Image:
    """The picture on white, without metadata."""
    if image.mode == "RGBA":
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A"))
        return flat
    flat = image.copy()
    flat.info = {}  # otherwise the encoders write some of it into the new file
    return flat


def _in_bytes(image: Image.Image) -> Image.Image:
    """A grey picture of larger numbers; where their range is unknown, with the darkest as black and the
    brightest as white."""
    if image.mode in _DEEP:
        return image.convert("I").point(lambda value: value * (1 / 257) + 0).convert("L")
    low, high = image.getextrema()
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        raise ReadingFailed("picture_damaged")
    scale = 255 / (high - low) if high > low else 0.0
    return image.point(lambda value: value * scale - low * scale).convert("L")


def _fitted(width: int, height: int, max_side: int) -> tuple[int, int]:
    """The size with the same proportions that has no longer side; halves of a pixel are rounded up."""
    longer = max(width, height)
    if longer <= max_side:
        return width, height
    new_width, new_height = ((2 * side * max_side + longer) // (2 * longer) for side in (width, height))
    return max(1, new_width), max(1, new_height)


def _resized(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    if size == image.size:
        return image
    factor = min(image.width // (2 * size[0]), image.height // (2 * size[1]))
    if factor > 1:
        # Costs no second picture of this size, as exact scaling of a transparent one does.
        image = image.reduce(factor)
    return image.resize(size, Image.Resampling.LANCZOS)


def _upright(image: Image.Image, orientation: int) -> Image.Image:
    turn = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }.get(orientation)
    return image if turn is None else image.transpose(turn)


def _sides(longest: int) -> Iterator[int]:
    """The longer sides to try, until the picture fits its bytes."""
    yield longest
    side = int(longest * _SMALLER)
    while side >= _SMALLEST_SIDE:
        yield side
        side = int(side * _SMALLER)


def _encodings(
    image: Image.Image, *, few_colours: bool
) -> Iterator[tuple[Literal["image/png", "image/jpeg"], bytes]]:
    """The picture in ever fewer bytes."""
    if few_colours:
        yield "image/png", _encoded(image, "PNG", optimize=True)
    for quality in _QUALITIES:
        yield "image/jpeg", _encoded(image, "JPEG", quality=quality)


def _encoded(image: Image.Image, form: str, **options: int) -> bytes:
    target = io.BytesIO()
    image.save(target, form, **options)
    return target.getvalue()
