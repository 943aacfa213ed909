"""Bundle the page's modules: those that the page needs at once become one file, and so does each part that is
loaded later.

A browser asks for every module, and over HTTP/1.1 for six at a time: forty modules are seven rounds through
a phone's network. They are written one by one all the same.

Each module of a bundle becomes a function that runs once and returns what the module exports. So modules
keep to a form that needs no parser of JavaScript: named imports and named exports, each at the start of a
line, and no module that needs itself. Any other form is an error. Not the responses (`pages`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from pipeline.domain.frozen import dataclass

_LOADED = re.compile(r'<script type="module" src="/static/([\w-]+)\.js">')
_LOADED_LATER = re.compile(r"import\('\./([\w-]+)\.js'\)(?!\.[A-Z])")
"""Where the name of a type follows, it is a comment, and nothing is loaded."""
_IMPORT = re.compile(r"\nimport \{([^}]*)\} from '\./([\w-]+)\.js';")
_EXPORT = re.compile(r"\nexport (?=(?:async function|function|class|const) (\w+))")
_OTHER_FORM = re.compile(
    r"\n((?:import\b(?!\s*[(.])|export\b(?! (?:async function|function|class|const) \w)).*)"
    r"|\n[ \t]+((?:import|export)\b(?!\s*[(.:]).*)"
)
_LINE = "\n"
_RENAMED = re.compile(r"\s+as\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """One module, and what it needs, by names without `.js`."""

    code: str
    """With its exports, and with objects in the place of what it imports."""
    exports: tuple[str, ...]
    imports: tuple[tuple[str, str], ...]
    """Each name with the module that it comes from."""
    at_once: tuple[str, ...]
    later: tuple[str, ...]


def bundled(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a page by their names, with bundles in the place of its modules.

    What index.html loads keeps its name, and so does what a module loads later by `import('./NAME.js')`. What
    several of the later parts need stays a separate file. Raises ValueError for a module in a form that
    cannot be bundled, and for one that is missing.
    """
    page = contents.get("index.html", b"").decode("utf-8")
    opening = [name for name in _LOADED.findall(page) if f"{name}.js" in contents]
    modules = _modules(contents, opening)
    later = sorted({name for module in modules.values() for name in module.later} - set(opening))
    roots = (*opening, *later)
    _check_names(modules)
    reached = {root: _reached(modules, root, roots) for root in roots}
    for root in opening:
        for name in sorted(set(reached[root]) & set(later)):
            raise ValueError(f"{name}.js is loaded later by import(), and {root}.js needs it at once.")
    homes = {name: _home(name, opening, reached) for name in modules}
    kept = {name: content for name, content in contents.items() if name.removesuffix(".js") not in modules}
    files = {
        f"{home}.js": _bundle(home, reached.get(home, [home]), modules, homes).encode("utf-8")
        for home in set(homes.values())
    }
    return dict(sorted({**kept, **files}.items()))


def _modules(contents: Mapping[str, bytes], opening: Sequence[str]) -> dict[str, _Module]:
    """Every module that the page can come to load."""
    found: dict[str, _Module] = {}
    waiting = list(opening)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if f"{name}.js" not in contents:
            raise ValueError(f"{name}.js, which a module of the page imports, is missing.")
        found[name] = _module(name, contents[f"{name}.js"].decode("utf-8"))
        waiting += [*found[name].at_once, *found[name].later]
    return found


def _module(name: str, code: str) -> _Module:
    needed: list[str] = []
    imports: list[tuple[str, str]] = []

    def taken(found: re.Match[str]) -> str:
        source = found.group(2)
        names = [stripped for one in found.group(1).split(",") if (stripped := one.strip())]
        needed.append(source)
        imports.extend((_RENAMED.split(one)[0], source) for one in names)
        return f"\nconst {{ {', '.join(_RENAMED.sub(': ', one) for one in names)} }} = {_object(source)};"

    linked = _IMPORT.sub(taken, f"\n{code}")
    other = _OTHER_FORM.search(linked)
    if other is not None:
        words = other.group(1) or other.group(2)
        raise ValueError(f"{name}.js cannot be bundled with the other modules of the page: {words}")
    return _Module(
        code=linked,
        exports=tuple(_EXPORT.findall(linked)),
        imports=tuple(imports),
        at_once=tuple(needed),
        later=tuple(_LOADED_LATER.findall(code)),
    )


def _check_names(modules: Mapping[str, _Module]) -> None:
    """Raise ValueError where a module imports what another does not export. A browser says so of a module;
    in a bundle it would be `undefined`."""
    for name, module in modules.items():
        for one, source in module.imports:
            if one not in modules[source].exports:
                raise ValueError(f"{name}.js imports {one} from {source}.js, which does not export it.")


def _reached(modules: Mapping[str, _Module], root: str, roots: Sequence[str]) -> list[str]:
    """The module and all that it needs at once, each after those that it needs, without what other roots
    need."""
    needed: dict[str, tuple[str, ...]] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = modules[name].at_once if name == root or name not in roots else ()
            waiting += needed[name]
    try:
        return list(TopologicalSorter(needed).static_order())
    except CycleError as error:
        raise ValueError(f"Modules of the page need one another: {', '.join(error.args[1])}.") from None


def _home(name: str, opening: Sequence[str], reached: Mapping[str, Sequence[str]]) -> str:
    """The module in whose file the module is."""
    needing = [root for root in reached if name in reached[root]]
    if name in reached or (len(needing) > 1 and needing[0] not in opening):
        return name
    return needing[0]


def _bundle(
    home: str, reached: Sequence[str], modules: Mapping[str, _Module], homes: Mapping[str, str]
) -> str:
    """The file of the module `home`, with those of the reached modules that are in it."""
    inside = [name for name in reached if homes[name] == home and name != home]
    needed = {other for name in (*inside, home) for other in modules[name].at_once}
    parts = [_fetched(name, homes[name]) for name in sorted(needed) if homes[name] != home]
    for name in inside:
        code = modules[name].code
        exported = ", ".join(modules[name].exports)
        parts.append(f"const {_object(name)} = (() => {{")
        parts.append(f"{_EXPORT.sub(_LINE, code)}\nreturn {{ {exported} }};\n}})();\n")
    parts.append(modules[home].code)
    if inside:
        parts.append(f"export {{ {', '.join(_object(name) for name in inside)} }};\n")
    return "\n".join(parts)


def _fetched(name: str, home: str) -> str:
    """The line that imports the exports of a module of another file."""
    what = f"* as {_object(name)}" if home == name else f"{{ {_object(name)} }}"
    return f"import {what} from './{home}.js';"


def _object(name: str) -> str:
    """The name of the object that has a module's exports."""
    return f"${name.replace('-', '_')}"
