"""What pages point at is there: files that they name, links, and anchors in other pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "dovetail"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples" / "README.md"]

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def anchors(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", _without_code(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    plain = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).replace("`", "").lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", _without_code(page.read_text(encoding="utf-8")))
    dead = []
    for target in re.findall(r"\]\((?!https?://|mailto:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(target)
    assert dead == []


@each_page
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        pytest.skip("tells of files as they were")
    named = set(re.findall(r"`([a-z_]+/[\w/]+(?:\.py|/))(?:: \w+)?`", page.read_text(encoding="utf-8")))
    real = {path for path in named if "NAME" not in path}
    # Rooms are named within the row of their folder.
    bases = (PACKAGE, PACKAGE / "engine", PACKAGE / "optimizer", PACKAGE / "runtime", ROOT)
    assert sorted(path for path in real if not any((base / path).exists() for base in bases)) == []


@pytest.mark.parametrize("page", ["service.md", "operations.md", "elastic.md"])
def test_every_metric_that_a_page_names_exists(page: str) -> None:
    source = (PACKAGE / "service" / "metrics.py").read_text(encoding="utf-8")
    gauges = set(re.findall(r'"(dovetail_\w+)"', source))
    counters = {f"dovetail_{name}_total" for name in re.findall(r'_counter\("(\w+)"', source)}
    known = {*gauges, *counters, *(f"{name}_bucket" for name in gauges if name.endswith("_seconds"))}
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert set(re.findall(r"\b(dovetail_(?!query\b|batch\b|sequence\b)\w+)", text)) <= known
