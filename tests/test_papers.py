"""docs/papers.md is the key of the tags in comments: every tag has a row, and every file it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
IDEAS = re.findall(r"^\| ([ABCDMS]\d+) \| (.+?) \| (.+?) \|$", PAGE, flags=re.MULTILINE)

TAG = re.compile(r"[ABCDMS]\d{1,2}")
TAGGED = re.compile(rf"\([^()]*?\b{TAG.pattern}\b[^()]*\)")
"""A tag stands in brackets, alone or with others; `m0` and `Q5` are no tags."""


def tags_in(text: str) -> set[str]:
    return {tag for bracket in TAGGED.findall(text) for tag in TAG.findall(bracket)}


def test_tags_are_found_in_brackets_only() -> None:
    assert tags_in("buckets (A1, B5); AJoin section 4 (A5, Fig. 2) but R1 and C3 outside") == {"A1", "B5", "A5"}


def test_every_tag_in_the_code_has_a_row() -> None:
    known = {identifier for identifier, _, _ in IDEAS}
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py"), ROOT / "ARCHITECTURE.md"]
    unknown = {
        f"{path.relative_to(ROOT)}: {tag}"
        for path in files
        for tag in tags_in(path.read_text(encoding="utf-8")) - known
    }
    assert unknown == set()


def test_ideas_are_numbered_without_gaps_and_named_once() -> None:
    by_letter: dict[str, list[int]] = {}
    for identifier, _, _ in IDEAS:
        by_letter.setdefault(identifier[0], []).append(int(identifier[1:]))
    assert by_letter == {letter: list(range(1, len(numbers) + 1)) for letter, numbers in by_letter.items()}
    assert {letter: len(numbers) for letter, numbers in by_letter.items()} == {
        "A": 11, "B": 10, "C": 8, "M": 8, "S": 9, "D": 6
    }  # fmt: skip


def test_every_file_that_is_named_exists() -> None:
    named = [path for _, _, where in IDEAS for path in re.findall(r"`([\w./]+/[\w.]+)`", where)]
    assert len(named) > 50
    missing = [path for path in named if not any((base / path).exists() for base in (ROOT / "src" / "dovetail", ROOT))]
    assert missing == []
