"""The interface as one page of HTML, made from its schema: without scripts, and nothing comes from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "h2{font:bold 1rem monospace;margin:1.6rem 0 .2rem;border-top:1px solid #ccc;padding-top:.6rem}"
    "code,td:first-child{font-family:monospace}td{padding:0 1rem .1rem 0;vertical-align:top}"
)


def docs_page(schema: Mapping[str, Any]) -> str:
    info = schema["info"]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style>",
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        f"<p>{escape(info.get('summary', ''))} The same for programs: <a href=/openapi.json>/openapi.json</a>. ",
        "Requests carry <code>Authorization: Bearer TOKEN</code>.</p>",
    ]
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            parts += _route(method, path, route)
    return "".join(parts) + "</html>"


def _route(method: str, path: str, route: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>{method.upper()} {escape(path)}</h2><p>{escape(route.get('description', route.get('summary', '')))}</p>"
    rows = [
        (each["name"], each["in"] + (", required" if each.get("required") else ""), each.get("description", ""))
        for each in route.get("parameters", ())
    ]
    content = route.get("requestBody", {}).get("content", {})
    rows += [("body", kind, _named(each.get("schema", {}))) for kind, each in content.items()]
    rows += [
        (
            code,
            "",
            ", ".join(filter(None, (_named(each.get("schema", {})) for each in answer.get("content", {}).values()))),
        )
        for code, answer in sorted(route.get("responses", {}).items())
        if code.startswith("2")
    ]
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    yield "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


def _named(schema: Mapping[str, Any]) -> str:
    """The record that a schema refers to."""
    return str(schema.get("$ref", "")).rpartition("/")[2]
