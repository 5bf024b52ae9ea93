"""The file against what a checkpoint knows: what is created, replaced, changed, and what cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from dovetail.engine.control.look import look_at
from dovetail.service.config.config import load_config
from dovetail.service.config.desired import plan_changes
from dovetail.service.desired_state import DesiredState
from tests.support.served_local import ServedLocalSession

FILE = """\
checkpoint_dir: ./checkpoint
streams:
  a:
    format: json
    columns: {k: int, v: int, ts: timestamp}
    event_time: ts
    lateness: 2 seconds
    options: {path: ./a}
  b:
    format: json
    columns: {k: int, v: int, ts: timestamp}
    event_time: ts
    options: {path: ./b}
queries:
  pairs:
    sql: SELECT a.k, b.v FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS
  all_of_a:
    sql: SELECT * FROM a
"""


class File:
    """A configuration, and the session of its checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "serve.yaml"
        self.path.write_text(dedent(FILE))
        self.session = ServedLocalSession(folder / "checkpoint")
        self.desired = DesiredState(load_config(self.path))
        self.desired.apply(self.session)

    def edit(self, before: str, after: str) -> None:
        text = self.path.read_text()
        assert text.count(before) == 1
        self.path.write_text(text.replace(before, after))

    def planned(self) -> list[str]:
        config = load_config(self.path)
        return [str(change) for change in plan_changes(config, look_at(config.checkpoint_dir), "UTC")]

    def apply(self) -> list[str]:
        self.desired.reload()
        return [str(change) for change in self.desired.apply(self.session)]

    def query(self, name: str) -> tuple[str, str]:
        record = self.session.engine.queries.named(name)
        assert record is not None
        return record.id, record.sql


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    made = File(tmp_path)
    yield made
    made.session.stop()


def test_what_the_file_has_already_is_no_change(file: File) -> None:
    assert (file.planned(), file.apply()) == ([], [])


def test_another_text_of_the_same_meaning_is_no_change(file: File) -> None:
    file.edit("SELECT a.k, b.v FROM a JOIN b ON", "select  a.k ,  b.v /* as before */ from a   join b on")
    assert file.planned() == []


def test_another_meaning_is_replaced_with_the_options_of_the_file(file: File) -> None:
    before, _ = file.query("pairs")
    file.session.create_query("SELECT a.k FROM a", "pairs", replace=True, max_results_per_batch=7)
    planned = file.planned()
    assert planned == [
        f"line 16, query pairs: replace: it means something else than the query of this name, {file.query('pairs')[0]}"
    ]
    assert file.apply() == planned
    now, sql = file.query("pairs")
    record = file.session.engine.queries.named("pairs")
    assert record is not None
    assert (now != before, "JOIN" in sql, record.options.max_results_per_batch) == (True, True, None)
    assert file.apply() == []


def test_options_are_as_the_file_has_them(file: File) -> None:
    before, _ = file.query("pairs")
    file.session.engine.queries.set_options(before, {"sink": "json", "sink.path": "/x", "max_pairs_per_batch": 9})
    assert file.apply() == ["line 16, query pairs: change: options: max_pairs_per_batch, sink"]
    record = file.session.engine.queries.named("pairs")
    assert record is not None
    assert (record.id, record.options.sink, record.options.max_pairs_per_batch) == (before, None, None)


def test_a_query_that_does_not_compile_fails_alone(file: File) -> None:
    before = file.query("pairs")
    file.edit("a.k, b.v", "a.k, b.vv")
    file.edit("SELECT * FROM a", "SELECT * FROM a WHERE v > 1")
    made = file.apply()
    assert [change.split(":")[0] for change in made] == ["line 16, query pairs", "line 18, query all_of_a"]
    assert "cannot be used" in made[0]
    assert "vv" in made[0]
    assert (file.query("pairs"), file.query("all_of_a")[1]) == (before, "SELECT * FROM a WHERE v > 1")
    failed = file.desired.failed_query("pairs")
    assert failed is not None
    assert failed.line == 16
    file.edit("a.k, b.vv", "a.k, b.v")
    assert (file.apply(), file.desired.failed) == ([], {})


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("lateness: 2 seconds", "lateness: 5 seconds", "lateness 2 seconds becomes 5 seconds"),
        ("options: {path: ./a}", "options: {path: ./a, maxFilesPerTrigger: 3}", "options: maxFilesPerTrigger"),
    ],
)
def test_lateness_and_options_of_a_stream_may_change(file: File, before: str, after: str, what: str) -> None:
    queries = file.query("pairs"), file.query("all_of_a")
    file.edit(before, after)
    planned = file.planned()
    assert planned == [f"line 3, stream a: change: {what}"]
    assert file.apply() == planned
    assert (file.planned(), (file.query("pairs"), file.query("all_of_a"))) == ([], queries)


def test_a_new_column_begins_those_queries_anew_that_answer_it(file: File) -> None:
    pairs, all_of_a = file.query("pairs"), file.query("all_of_a")
    text = file.path.read_text()
    file.path.write_text(
        text.replace("{k: int, v: int, ts: timestamp}", "{k: int, v: int, ts: timestamp, w: string}", 1)
    )
    assert file.apply() == ["line 3, stream a: change: column w string is new"]
    assert file.query("pairs") == pairs
    assert file.query("all_of_a") != all_of_a
    reads = file.session.engine.queries.compiled(file.query("all_of_a")[0]).read_columns()
    assert "w" in reads["a"]


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (lambda text: text.replace("v: int", "v: string", 1), "column v int becomes string"),
        (lambda text: text.replace("v: int, ", "", 1), "column v int is gone"),
        (lambda text: text.replace("format: json", "format: csv", 1), "format json becomes csv"),
    ],
)
def test_what_no_checkpoint_takes_is_refused_and_stops_nobody(
    file: File, edit: Callable[[str], str], what: str
) -> None:
    before = file.session.engine.streams.declared()
    file.path.write_text(edit(file.path.read_text()))
    made = file.apply()
    assert made[0].startswith(f"line 3, stream a: cannot be used: {what}")
    assert file.session.engine.streams.declared() == before


def test_a_stream_that_would_break_a_query_stays_as_it_is(file: File) -> None:
    file.session.create_query("SELECT v2 FROM a JOIN (SELECT k AS k2, v AS v2 FROM b) AS d ON k = k2", "unqualified")
    before = file.session.engine.streams.declared()
    text = file.path.read_text()
    file.path.write_text(text.replace("{k: int, v: int, ts: timestamp}", "{k: int, v: int, ts: timestamp, v2: int}", 1))
    (made,) = file.apply()
    assert "query 'unqualified' would not compile" in made
    assert file.session.engine.streams.declared() == before


def test_the_changes_of_a_file_survive_a_restart(file: File, tmp_path: Path) -> None:
    file.edit("lateness: 2 seconds", "lateness: 5 seconds")
    file.apply()
    file.session.stop()
    again = ServedLocalSession(tmp_path / "checkpoint")
    assert again.engine.streams.declared()["a"].lateness == "5 seconds"
    assert DesiredState(load_config(file.path)).apply(again) == ()
    again.stop()
