"""The file that the shield judges is the one that the files tools use, however its path is written.

Covers: pipeline/shield/file_places.py, pipeline/shield/proposal.py.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.shield.globs import normal_path
from pipeline.tools.failures import Refused
from pipeline.tools.files import files_group
from tests.pipeline.shield.proposals import proposal
from tests.support.contexts import scope

_PARTS = st.sampled_from(
    [
        "own",
        "Own",
        "OWN",
        "shared",
        "Shared",
        ".",
        "..",
        "a",
        "A",
        "b.txt",
        "",
        "file:",
        "own ",
        "\u017fhared",
        "~",
    ]
)
_PATHS = st.builds(
    lambda parts, joints: "".join(f"{part}{joint}" for part, joint in zip(parts, joints, strict=False)),
    st.lists(_PARTS, min_size=1, max_size=5),
    st.lists(st.sampled_from(["/", "\\", "//"]), min_size=5, max_size=5),
)
_WRITE = {tool.name: tool for tool in files_group(Path("/nowhere")).fixed}["write_file"]


@settings(max_examples=400)
@given(_PATHS)
def test_a_path_that_the_tools_use_is_the_one_that_is_judged(path: str) -> None:
    assert _WRITE.changes is not None
    try:
        (place,) = _WRITE.changes({"path": path, "text": ""}, scope())
    except Refused:
        return
    used = "/".join(("own", *place.parts[3:]))
    assert proposal("write_file", {"path": path}).paths == (normal_path(used),)
