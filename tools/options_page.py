"""Writes docs/options.md from the records that hold the options: `python -m tools.options_page`."""

from __future__ import annotations

from dataclasses import Field
from pathlib import Path
from typing import Any

from dovetail.engine.options.engine_options import RECORDS, USER_OPTIONS
from dovetail.engine.options.option import options_of
from dovetail.engine.options.tuning import EngineTuning

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
HEAD = """# Options of a session

<!-- Written by `make options` from src/dovetail/engine/options: change it there. -->

Keywords of `Session(spark, checkpoint_dir, ...)`, and keys under `session:` in the [service's file](configuration.md).
Besides these {count}, `trigger` says how often a batch begins, e.g. `"1 second"`. An option that does not exist is
refused, with the one that may have been meant; so is a value that cannot work. Only `key_groups` is fixed for the life
of a checkpoint; all others may change with every start. The time zone of timestamps in SQL texts is Spark's,
`spark.sql.session.timeZone`. Options of single queries are in [sql](sql.md#statements).
"""
INNER = """
## Inner settings

What tests and benchmarks set to see one part at a time. No answer depends on them, and they may change with any
version: leave them alone unless a page tells you otherwise. They go through one record, `EngineTuning` of
`dovetail.engine.options`: `Session(spark, checkpoint_dir, tuning=EngineTuning(small_batch_rows=0))`.
"""


def page() -> str:
    text = HEAD.format(count=len(USER_OPTIONS))
    for name, record in RECORDS.items():
        text += f"\n## {name.capitalize()}\n\n{_first_line(record)}\n\n{_table(record)}"
    return text + f"{INNER}\n{_table(EngineTuning)}"


def _first_line(record: type[Any]) -> str:
    """A path in a docstring is a link on a page."""
    line = (record.__doc__ or "").strip().split("\n")[0]
    before, _, link = line.removesuffix(").").partition(" (docs/")
    return f"{before}: [{link.removesuffix('.md')}]({link})." if link else line


def _table(record: type[Any]) -> str:
    rows = [
        f"| `{name}` | {_default(entry)} | {entry.metadata['what']} |" for name, entry in options_of(record).items()
    ]
    return "\n".join(("| option | default | what it does |", "|---|---|---|", *rows)) + "\n"


def _default(entry: Field[Any]) -> str:
    if entry.metadata["shown"] is not None:
        return str(entry.metadata["shown"])
    return "none" if entry.default is None else f"`{entry.default!r}`".replace("'", '"')


if __name__ == "__main__":
    PAGE.write_text(page())
