"""What becomes of every block of every page: a program runs it, it is what a program shows, or why neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tools.first_hour.blocks import Block, blocks_of

EXCERPT = "an excerpt: its streams and queries are those of the reader; its Python is checked"
DRAWING = "a drawing"
STATEMENTS = "SQL over streams of the reader; a test compiles the examples of docs/sql.md"
RESPONSE = "what a service answers; its figures and names depend on the data"
SHOWN = "what a session prints; its figures and names depend on the data"
SETTINGS = "settings for another program"
SETS_UP = "installs from the network"
TESTS = "runs the tests, of which this is one"


@dataclass(frozen=True)
class Run:
    program: str


@dataclass(frozen=True)
class Listed:
    reason: str


Use = Run | Listed

_TUTORIAL, _CLIENTS = Run("tutorial"), Run("command line and client")
USES: Mapping[str, Sequence[Use]] = {
    "README.md": (
        Run("README: make demo"),
        Run("README: from Python"),
        Run("README: as a service"),
        Listed(DRAWING),
    ),
    "CONTRIBUTING.md": (Listed(f"{SETS_UP}; {TESTS}"),),
    "ARCHITECTURE.md": (Listed(DRAWING), Listed(DRAWING)),
    "docs/backfill.md": (Listed(EXCERPT), Listed(STATEMENTS)),
    "docs/cli.md": (_CLIENTS, Listed(SHOWN)),
    "docs/client.md": (_CLIENTS,),
    "docs/configuration.md": (Listed(SHOWN), Listed(SHOWN), Listed(SETTINGS)),
    "docs/elastic.md": (Listed(EXCERPT), Listed(SETTINGS)),
    "docs/explain.md": (Listed(SHOWN), Listed(SHOWN), Listed(SHOWN)),
    "docs/groups.md": (Listed(DRAWING),),
    "docs/install.md": (Listed(SETS_UP), Run("install: without an extra")),
    "docs/life_of_a_query.md": (Listed(STATEMENTS),),
    "docs/limits.md": (Listed(SHOWN), Listed(SHOWN)),
    "docs/operations.md": (Listed(SETTINGS), Listed(EXCERPT), Listed(SETTINGS)),
    "docs/optimizer.md": (Listed(DRAWING),),
    "docs/partitioning.md": (Listed(DRAWING), Listed(STATEMENTS)),
    "docs/placement.md": (Listed(DRAWING),),
    "docs/rest.md": (Listed(RESPONSE),) * 6,
    "docs/service.md": (Run("service page"), Run("service page")),
    "docs/sinks.md": (Listed(EXCERPT),),
    "docs/sql.md": (*(Listed(STATEMENTS),) * 3, Listed(SHOWN), Listed(STATEMENTS), Listed(SHOWN), Listed(SHOWN)),
    "docs/tutorial.md": (*(_TUTORIAL,) * 19, Run("tutorial: as a service")),
}
"""In the order of the page. A block that is added must find its place here, or a test fails."""
REFERENCE = "docs/api.md"
"""Made from docstrings: what a prompt stands before runs, the rest are excerpts."""


def uses_of(page: str) -> list[tuple[Block, Use | None]]:
    """Every block with what becomes of it; None: nobody has decided."""
    blocks = blocks_of(page)
    if page == REFERENCE:
        runs, excerpt = Run("reference: with a prompt"), Listed(EXCERPT)
        return [(block, runs if block.text.startswith(">>> ") else excerpt) for block in blocks]
    known = USES.get(page, ())
    missing = [None] * (len(blocks) - len(known))
    return list(zip(blocks, (*known, *missing), strict=False))
