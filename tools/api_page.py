"""Writes docs/api.md from the docstrings of what users import: `python -m tools.api_page`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import dovetail
from dovetail import client
from dovetail.core import errors
from dovetail.core.answer_batch import AnswerBatch
from dovetail.core.stream_description import StreamDescription
from dovetail.engine.delivery.delivery import Delivery
from dovetail.engine.delivery.tail import Tail
from dovetail.testing.local_session import LocalSession

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
HEAD = """# Python API

<!-- Written by `make api` from the docstrings: change them there. -->

`from dovetail import ...` gives the classes of the first part, [the client](client.md) is in `dovetail.client`, and a
session for tests in `dovetail.testing.local_session`. What a name means in one of them it means in all.
"""
PARTS: dict[str, dict[str, Any]] = {
    "A session in your program": {
        "Session": dovetail.Session,
        "Query": dovetail.Query,
        "local_spark": dovetail.local_spark,
        "ensure_java": dovetail.ensure_java,
        "archive_options": dovetail.archive_options,
    },
    "What they give": {
        "QueryStatus": dovetail.QueryStatus,
        "Tail": Tail,
        "AnswerBatch": AnswerBatch,
        "Delivery": Delivery,
        "StatementResult": dovetail.StatementResult,
        "StreamDescription": StreamDescription,
    },
    "What they take": {
        "StreamSpec": dovetail.StreamSpec,
        "SinkSpec": dovetail.SinkSpec,
        "StatsCatalog": dovetail.StatsCatalog,
    },
    "A client of a service": {
        "dovetail.client.Client": client.Client,
        "dovetail.client.Query": client.Query,
        "dovetail.client.Tail": client.Tail,
    },
    "Tests without Spark": {"dovetail.testing.local_session.LocalSession": LocalSession},
}
MADE_BY_USERS = (dovetail.Session, client.Client)
"""All others come from these, so how they are made is nobody's concern."""
INNER_BY_KIND: dict[type, tuple[str, ...]] = {
    # For programs that serve a session.
    dovetail.Session: ("engine", "delivery_of"),
    Delivery: ("wake", "drain", "is_of_this_thread"),
    LocalSession: ("redeliver",),
}
"""Public members that users do not need."""


def page() -> str:
    text = HEAD
    for title, members in PARTS.items():
        text += f"\n## {title}\n"
        for name, member in members.items():
            text += _class(name, member) if inspect.isclass(member) else _call(name, member, "###")
    return text + _errors()


def _class(name: str, kind: type) -> str:
    text = f"\n### {name}\n"
    if kind in MADE_BY_USERS:
        text += f"\n`{_signature(kind.__name__, kind)}`\n"
    text += _doc(kind)
    if is_dataclass(kind):
        return f"{text}\nFields: {', '.join(f'`{entry.name}`' for entry in fields(kind))}.\n"
    return text + "".join(
        _property(member, value) if isinstance(value, property) else _call(member, value, "####")
        for member, value in _members(kind)
    )


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(kind).items():
        is_shown = not name.startswith("_") and name not in INNER_BY_KIND.get(kind, ())
        if is_shown and (isinstance(value, property) or inspect.isfunction(value)):
            yield name, value


def _property(name: str, value: Any) -> str:
    return f"\n#### {name}\n\n`{name}: {inspect.signature(value.fget).return_annotation}`\n{_doc(value.fget)}"


def _call(name: str, call: Any, level: str) -> str:
    return f"\n{level} {name}\n\n`{_signature(name, call)}`\n{_doc(call)}"


def _signature(name: str, call: Any) -> str:
    """As it is called: without `self`, and annotations as they are written."""
    signature = inspect.signature(call)
    found, is_keyword_only = list[str](), False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword_only:
            found.append("*")
            is_keyword_only = True
        stars = "**" if parameter.kind is inspect.Parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is inspect.Parameter.empty else f" = {_default(parameter.default)}"
        found.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    answer = "" if signature.return_annotation in ("None", inspect.Signature.empty) else signature.return_annotation
    text = f"{name}({', '.join(found)})" + (f" -> {answer}" if answer else "")
    return text.replace("ExplainFormat", 'Literal["text", "json"]')


def _default(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _doc(member: Any) -> str:
    """Code that is indented or a doctest becomes a block; a page of the docs becomes a link."""
    text = inspect.getdoc(member) or ""
    assert text, f"{member} has no docstring"
    text = re.sub(r"docs/(\w+)\.md", r"[\1](\1.md)", text)
    return "".join(f"\n{block}\n" for block in _blocks(text))


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs as they are, code between fences."""
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        is_doctest = lines[0].startswith(">>>")
        if not (is_doctest or lines[0].startswith("    ")):
            yield paragraph
        else:
            code = lines if is_doctest else [line.removeprefix("    ") for line in lines]
            yield "\n".join(["```python", *code, "```"])


def _errors() -> str:
    text = "\n## Errors\n\nEach has `what`, `where` and `hint`, and shows them as its text. All are in `dovetail`.\n"
    text += "\n| error | is a | says |\n|---|---|---|\n"
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.DovetailError):
            bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
            text += f"| `{name}` | {bases} | {' '.join((inspect.getdoc(kind) or '').split())} |\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
