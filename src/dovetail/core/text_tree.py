"""The one indented printer: every explain, log and golden file uses it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TextTree:
    """A line with lines below it.

    >>> print(TextTree("plan", (TextTree("store a"), TextTree("store b", (TextTree("by k"),)))))
    plan
    ├─ store a
    └─ store b
       └─ by k
    """

    line: str
    children: tuple[TextTree, ...] = field(default=())

    def __str__(self) -> str:
        return "\n".join([self.line, *self._below("")])

    def _below(self, indent: str) -> Iterator[str]:
        for position, child in enumerate(self.children):
            is_last = position == len(self.children) - 1
            yield f"{indent}{'└─ ' if is_last else '├─ '}{child.line}"
            yield from child._below(f"{indent}{'   ' if is_last else '│  '}")
