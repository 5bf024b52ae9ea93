"""The fenced blocks of a page, and the commands of one that shows a terminal."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CHECKPOINT_OF_PAGES = "/tmp/dovetail-checkpoint"  # noqa: S108 - as pages write it


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """`shown` is what the page shows below it."""

    text: str
    shown: tuple[str, ...] = ()


def blocks_of(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2]) for found in _FENCED.finditer(text)]


def all_pages() -> list[str]:
    """Those for users; design notes and the changelog tell of what was."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", ROOT / "examples" / "README.md"]
    return [str(page.relative_to(ROOT)) for page in (*pages, *sorted((ROOT / "docs").glob("*.md")))]


def commands_of(text: str) -> list[Command]:
    r"""Lines that begin with «$ », with the lines that go on with them; the others are output.

    >>> commands_of("$ echo 'a\n  b'\na\n  b\n\n$ ls  # all\n")
    [Command(text="echo 'a\n  b'", shown=('a', '  b')), Command(text='ls  # all', shown=())]
    """
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and not found[-1][1] and _goes_on(found[-1][0]):
            found[-1] = f"{found[-1][0]}\n{line}", []
        elif found and line:
            found[-1][1].append(line)
    return [Command(command, tuple(shown)) for command, shown in found]


def _goes_on(command: str) -> bool:
    if command.endswith("\\"):
        return True
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True  # a quote is open
    return False


def in_own_folder(program: str, folder: Path) -> str:
    """A page names one folder for everybody; programs that run side by side each need their own."""
    return program.replace(_CHECKPOINT_OF_PAGES, str(folder / "checkpoint"))
