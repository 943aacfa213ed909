"""The two folders of the files tools, `own` and `shared`, at the beginning of a path.

The tools and the shield divide a path here, so that the file that is judged is the one that is used.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

Folder = Literal["own", "shared", ""]
_NAMES: Final[dict[str, Folder]] = {"own": "own", "shared": "shared"}
_HERE = re.compile(r"(?:\./+)+")


def divided(path: str) -> tuple[Folder, str]:
    """The folder that a path begins with, and the rest; no folder and the whole path if it names none.

    The name counts in any case and after any number of `./`, and `\\` separates as `/` does.
    """
    text = path.replace("\\", "/")
    here = _HERE.match(text)
    text = text if here is None else text[here.end() :]
    first, _, rest = text.partition("/")
    folder = _NAMES.get(unicodedata.normalize("NFC", first).casefold(), "")
    return (folder, rest) if folder else ("", text)
