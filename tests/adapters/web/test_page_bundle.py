"""The page's modules as a browser gets them: bundled, each of them once, and refused in any other form."""

from __future__ import annotations

import re

import pytest

from adapters.web.page_bundle import bundled
from adapters.web.settings import PACKAGED_PAGE

_PAGE = '<script type="module" src="/static/app.js"></script>'


def _files(page: str = _PAGE, **modules: str) -> dict[str, str]:
    """The bundled files of these modules."""
    contents = {f"{name}.js": code.encode() for name, code in modules.items()}
    found = bundled({"index.html": page.encode(), **contents})
    assert found.pop("index.html") == page.encode()
    return {name: content.decode() for name, content in found.items()}


def _lines(code: str) -> list[str]:
    return [line for line in code.splitlines() if line]


def test_what_is_needed_at_once_is_in_the_file_after_what_it_needs_itself() -> None:
    files = _files(
        app="import { b } from './b.js';\nimport { a as first } from './a.js';\nb(first);\n",
        b="import {\n  a,\n} from './a.js';\nexport function b() { return a; }\n",
        a="export const a = 1;\nexport class C {}\nexport async function d() {}\nconst own = 2;\n",
    )
    assert list(files) == ["app.js"]
    assert _lines(files["app.js"]) == [
        "const $a = (() => {",
        "const a = 1;",
        "class C {}",
        "async function d() {}",
        "const own = 2;",
        "return { a, C, d };",
        "})();",
        "const $b = (() => {",
        "const { a } = $a;",
        "function b() { return a; }",
        "return { b };",
        "})();",
        "const { b } = $b;",
        "const { a: first } = $a;",
        "b(first);",
        "export { $a, $b };",
    ]


def test_a_part_that_is_loaded_later_takes_what_the_page_has_already_from_there() -> None:
    files = _files(
        app="import { el } from './dom.js';\nel(import('./panel-a.js'), import('./panel-b.js').catch(el));\n",
        dom="export function el() {}\n",
        **{
            "panel-a": "import { el } from './dom.js';\nimport { own } from './own-part.js';\n"
            "import { both } from './both.js';\nexport const shown = el(own, both);\n",
            "panel-b": "import { shown } from './panel-a.js';\nimport { both } from './both.js';\n"
            "shown(both);\n",
            "own-part": "export const own = 1;\n",
            "both": "import { el } from './dom.js';\nexport const both = el();\n",
        },
    )
    assert sorted(files) == ["app.js", "both.js", "panel-a.js", "panel-b.js"]
    assert _lines(files["panel-a.js"]) == [
        "import * as $both from './both.js';",
        "import { $dom } from './app.js';",
        "const $own_part = (() => {",
        "const own = 1;",
        "return { own };",
        "})();",
        "const { el } = $dom;",
        "const { own } = $own_part;",
        "const { both } = $both;",
        "export const shown = el(own, both);",
        "export { $own_part };",
    ]
    assert _lines(files["panel-b.js"]) == [
        "import * as $both from './both.js';",
        "import * as $panel_a from './panel-a.js';",
        "const { shown } = $panel_a;",
        "const { both } = $both;",
        "shown(both);",
    ]
    assert "import { $dom } from './app.js';" in files["both.js"]


def test_types_in_comments_load_nothing() -> None:
    files = _files(app="/** @param {import('./types.js').Type} x */\nf();\n", types="g();\n")
    assert _lines(files["app.js"]) == ["/** @param {import('./types.js').Type} x */", "f();"]
    assert files["types.js"] == "g();\n"


def test_scripts_that_the_page_does_not_load_as_modules_stay_as_they_are() -> None:
    files = _files(page="<script src='/static/theme.js'></script>", theme="a();\n", sw="import 'x';\n")
    assert files == {"theme.js": "a();\n", "sw.js": "import 'x';\n"}


@pytest.mark.parametrize(
    "line",
    [
        "import './b.js';",
        "import b from './b.js';",
        "import * as b from './b.js';",
        "import { b } from '/static/b.js';",
        "export default 1;",
        "export let b = 1;",
        "export const { b } = c;",
        "export { b };",
        "export * from './b.js';",
        "  import { b } from './b.js';",
        "  export const c = 1;",
    ],
)
def test_a_module_in_another_form_is_refused_with_its_line(line: str) -> None:
    words = f"app.js cannot be bundled with the other modules of the page: {line.strip()}"
    with pytest.raises(ValueError, match=re.escape(words)):
        _files(app=f"a();\n{line}\n", b="export const b = 1;\n")


def test_a_module_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match=re.escape("b.js, which a module of the page imports, is missing.")):
        _files(app="import { b } from './b.js';\n")


def test_a_name_that_is_not_exported_is_named() -> None:
    words = "app.js imports c from b.js, which does not export it."
    with pytest.raises(ValueError, match=re.escape(words)):
        _files(app="import { b, c as d } from './b.js';\n", b="export const b = 1, c = 2;\n")


def test_a_module_that_is_loaded_later_is_not_needed_at_once() -> None:
    words = "part.js is loaded later by import(), and app.js needs it at once."
    with pytest.raises(ValueError, match=re.escape(words)):
        _files(
            app="import { a } from './a.js';\na(import('./part.js'));\n",
            a="import { part } from './part.js';\nexport const a = part;\n",
            part="export const part = 1;\n",
        )


def test_modules_that_need_one_another_are_named() -> None:
    with pytest.raises(ValueError, match=r"^Modules of the page need one another: (b, c, b|c, b, c)\.$"):
        _files(
            app="import { b } from './b.js';\n",
            b="import { c } from './c.js';\nexport const b = 1;\n",
            c="import { b } from './b.js';\nexport const c = 1;\n",
        )


def test_every_packaged_module_is_served_exactly_once() -> None:
    contents = {path.name: path.read_bytes() for path in PACKAGED_PAGE.iterdir()}
    files = bundled(contents)
    served = b"\n".join(content for name, content in files.items() if name.endswith(".js"))
    modules = {name for name in contents if name.endswith(".js")}
    assert len(modules) > 60
    for name in modules:
        # What it says about itself, at its top.
        about = contents[name].partition(b"*/")[0]
        assert served.count(about) == 1, name
    assert contents.keys() - modules <= files.keys() <= contents.keys()
