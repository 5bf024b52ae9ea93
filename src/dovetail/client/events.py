"""Server-sent events as the HTML standard writes them: fields by line, an empty line ends an event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """`id` is what a client sends as Last-Event-ID to go on after this event; empty if the event has none."""

    kind: str
    data: str
    id: str


def text_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    r"""Lines of a body that comes in pieces; only line feeds end them, whatever else Unicode takes for an end.

    >>> list(text_lines([b"data: a\xe2\x80", b"\xa8b\r\n", b"\ncut"]))
    ['data: a\u2028b', '']
    """
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Events of the lines; one that the connection cut short is left out, as the standard says.

    >>> list(read_events(["id: 7", "event: rows", "data: [1]", "", ": a comment", "data: cut"]))
    [Event(kind='rows', data='[1]', id='7')]
    """
    kind, data, event_id = "message", list[str](), ""
    for line in lines:
        if not line:
            if data:
                yield Event(kind, "\n".join(data), event_id)
            kind, data, event_id = "message", [], ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
        elif name == "id":
            event_id = value
