"""Pictures: what they become, in which size, and what is removed."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from gateway.reading.failures import ReadingFailed, unreadable
from gateway.reading.limits import MAX_PIXELS
from gateway.reading.pictures import read_picture
from pipeline.domain.readings import Picture
from tests.gateway.reading.files import encoded, photo, screenshot

FORMS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")


def read(content: bytes, *, max_side: int = 1_000, max_bytes: int = 1_000_000) -> Picture:
    return read_picture(content, max_side=max_side, max_bytes=max_bytes)


def opened(picture: Picture) -> Image.Image:
    image = Image.open(io.BytesIO(picture.content))
    image.load()
    assert image.size == (picture.width, picture.height)
    assert Image.MIME[str(image.format)] == picture.mime
    return image


def grey(picture: Picture, across: int, down: int) -> int:
    """How bright a pixel is, from 0 to 255."""
    return opened(picture).convert("L").tobytes()[down * picture.width + across]


def refused(content: bytes, **bounds: int) -> str:
    with pytest.raises(ReadingFailed) as caught:
        read(content, **bounds)
    return str(unreadable(caught.value))


@pytest.mark.parametrize("form", FORMS)
def test_each_format_is_read(form: str) -> None:
    picture = read(encoded(photo(), form))
    assert (picture.width, picture.height) == (picture.original_width, picture.original_height) == (320, 200)
    assert not picture.animated
    assert grey(picture, 300, 190) - grey(picture, 20, 10) > 60


def test_a_photo_becomes_a_jpeg_and_a_screenshot_stays_a_png() -> None:
    assert read(encoded(photo(), "PNG")).mime == "image/jpeg"
    assert read(encoded(photo(), "WEBP")).mime == "image/jpeg"
    assert read(encoded(screenshot(), "PNG")).mime == "image/png"
    assert read(encoded(screenshot(), "GIF")).mime == "image/png"
    assert read(encoded(screenshot(), "JPEG")).mime == "image/jpeg"


def test_the_longer_side_is_scaled_to_the_limit_and_the_shorter_one_in_proportion() -> None:
    wide = read(encoded(photo(1_200, 400), "PNG"), max_side=600)
    assert (wide.width, wide.height) == (600, 200)
    assert (wide.original_width, wide.original_height) == (1_200, 400)
    tall = read(encoded(photo(333, 1_000), "JPEG"), max_side=500)
    assert (tall.width, tall.height) == (167, 500)
    thread = read(encoded(screenshot(5_000, 40), "PNG"), max_side=100)
    assert (thread.width, thread.height) == (100, 1)


def test_a_small_picture_is_never_enlarged() -> None:
    picture = read(encoded(screenshot(40, 30), "PNG"), max_side=5_000)
    assert (picture.width, picture.height) == (40, 30)


def test_a_picture_of_too_many_bytes_is_encoded_in_fewer() -> None:
    content = encoded(photo(1_000, 800), "PNG")
    whole = read(content, max_bytes=10_000_000)
    small = read(content, max_bytes=20_000)
    assert len(whole.content) > 20_000 >= len(small.content)
    assert small.width < whole.width
    assert small.width / small.height == pytest.approx(1.25, abs=0.02)
    assert (
        refused(content, max_bytes=50) == "The picture cannot be made small enough to be sent to the model."
    )


def test_a_photo_taken_with_a_turned_phone_is_the_right_way_up() -> None:
    upright = Image.new("RGB", (300, 200), "white")
    upright.paste("black", (0, 0, 40, 40))  # the corner at the top left
    stored = {
        1: upright,
        2: upright.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        3: upright.transpose(Image.Transpose.ROTATE_180),
        4: upright.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
        5: upright.transpose(Image.Transpose.TRANSPOSE),
        6: upright.transpose(Image.Transpose.ROTATE_90),
        7: upright.transpose(Image.Transpose.TRANSVERSE),
        8: upright.transpose(Image.Transpose.ROTATE_270),
    }
    for orientation, image in stored.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        picture = read(encoded(image, "JPEG", exif=exif), max_side=150)
        assert (picture.width, picture.height) == (150, 100), orientation
        assert (picture.original_width, picture.original_height) == (300, 200), orientation
        corners = [grey(picture, *place) < 128 for place in ((8, 8), (141, 8), (8, 91), (141, 91))]
        assert corners == [True, False, False, False], orientation


def test_place_camera_comment_and_colour_profile_are_removed() -> None:
    exif = Image.Exif()
    exif[0x010F] = "SECRET camera"
    exif.get_ifd(0x8825)[1] = "SECRET north"
    for form in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF"):
        image = photo()
        image.info["comment"] = "SECRET comment"
        content = encoded(image, form, exif=exif, icc_profile=b"SECRET profile")
        assert b"SECRET" in content, form
        result = read(content)
        assert b"SECRET" not in result.content, form
        assert set(opened(result).info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}, form
    few = encoded(screenshot(), "GIF", comment=b"SECRET words")
    assert b"SECRET" in few
    assert b"SECRET" not in read(few).content


def test_an_animation_is_its_first_frame() -> None:
    frames = [screenshot(), Image.new("RGB", (320, 200), "red")]
    for form in ("GIF", "WEBP", "AVIF", "PNG"):
        content = encoded(frames[0], form, save_all=True, append_images=frames[1:])
        picture = read(content)
        assert picture.animated, form
        assert grey(picture, 20, 20) < 60, form  # navy; the second frame is red
        assert grey(picture, 300, 190) > 200, form


def test_what_is_transparent_becomes_white() -> None:
    image = Image.new("RGBA", (60, 40), (255, 0, 0, 0))
    image.paste((0, 0, 255, 255), (0, 0, 30, 40))
    for content in (encoded(image, "PNG"), encoded(image, "WEBP", lossless=True), encoded(image, "GIF")):
        result = opened(read(content)).convert("RGB")
        assert result.getpixel((5, 5)) == (0, 0, 255)
        assert result.getpixel((50, 20)) == (255, 255, 255)


def test_unusual_pixels_are_read() -> None:
    ramp = Image.linear_gradient("L").resize((64, 64))
    deep = ramp.convert("I").point(lambda value: value * 257)
    cases = {
        "deep.png": encoded(deep.convert("I;16"), "PNG"),
        "float.tiff": encoded(ramp.convert("F"), "TIFF"),
        "bits.png": encoded(ramp.convert("1"), "PNG"),
        "palette.png": encoded(ramp.convert("P"), "PNG"),
        "grey-alpha.png": encoded(ramp.convert("LA"), "PNG"),
        "ink.jpeg": encoded(photo(64, 64).convert("CMYK"), "JPEG"),
        "ink.tiff": encoded(photo(64, 64).convert("CMYK"), "TIFF"),
    }
    for name, content in cases.items():
        levels = opened(read(content)).convert("L").tobytes()
        assert min(levels) < 60, name
        assert max(levels) > 190, name


def test_too_many_pixels_are_refused_by_number() -> None:
    content = bytearray(encoded(screenshot(), "GIF"))
    content[6:10] = b"\xff\xff\xff\xff"
    assert refused(bytes(content)) == (
        "The picture has 65535 by 65535 pixels; I read up to 64 million. Please send a smaller one."
    )
    assert MAX_PIXELS == 64_000_000


def test_other_files_are_refused_with_the_formats_that_can_be_read() -> None:
    words = refused(b"%PDF-1.7 and more")
    assert words == "I cannot read this kind of picture. I read JPEG, PNG, GIF, WebP, BMP, TIFF and AVIF."
    assert refused(b"<svg xmlns='http://www.w3.org/2000/svg'/>") == words
    assert refused(b"BMW is a car, not a bitmap.") == words
    assert refused(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic").endswith(
        "as a photo instead of a file, or as JPEG."
    )


def test_a_damaged_picture_is_refused() -> None:
    for form in FORMS:
        content = encoded(photo(), form)
        words = refused(content[: len(content) // 3])
        assert words.startswith("I cannot read the picture. It is damaged or incomplete."), form
