"""What pages let a user run is run: `make first-hour` knows every block, and every program works as written."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.first_hour import __main__ as first_hour
from tools.first_hour.blocks import all_pages, blocks_of, commands_of
from tools.first_hour.catalogue import EXCERPT, USES, Listed, Run, uses_of
from tools.first_hour.process import ProgramFailed
from tools.first_hour.programs import PROGRAMS, Program
from tools.first_hour.work import Work, working


@pytest.mark.parametrize("page", all_pages())
def test_every_block_of_a_page_is_run_or_listed_with_a_reason(page: str) -> None:
    assert [block.place for block, use in uses_of(page) if use is None] == []
    assert len(USES.get(page, ())) <= len(blocks_of(page)), "a block that is gone is still in the catalogue"


def test_every_program_that_a_block_names_exists_and_every_page_of_the_catalogue_too() -> None:
    named = {use.program for page in all_pages() for _, use in uses_of(page) if isinstance(use, Run)}
    assert named <= {program.name for program in PROGRAMS}
    assert set(USES) <= set(all_pages())


def test_what_shows_a_terminal_is_no_drawing() -> None:
    """A block with a command that is listed must say why; one that runs must be seen as commands."""
    for page in all_pages():
        for block, use in uses_of(page):
            if block.text.startswith("$ "):
                assert block.language == "console", block.place
                assert commands_of(block.text), block.place
                assert isinstance(use, Run) or "install" in use.reason, block.place


def test_excerpts_are_python() -> None:
    for page in all_pages():
        for block, use in uses_of(page):
            if use == Listed(EXCERPT):
                ast.parse(block.text)


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        ("exit 3", "ended with 3"),
        ("for i in $(seq 61); do echo x >&2; done", "printed 61 lines on stderr"),
        ("echo 'Traceback (most recent call last):' >&2", "printed a traceback"),
    ],
)
def test_what_a_user_would_stumble_over_is_a_failure(command: str, failure: str) -> None:
    with working() as work, pytest.raises(ProgramFailed, match=failure):
        work.run(command)


def test_first_rows_are_those_that_look_like_rows() -> None:
    with working() as work:
        done = work.run("echo head; echo '|  1|'")
        assert work.first_rows_s is None
        work.rows_from(done, r"^\|\s*\d")
        assert work.first_rows_s is not None
        with pytest.raises(ProgramFailed, match="no line like"):
            work.rows_from(done, "tail")


def test_a_program_that_fails_is_counted_and_leaves_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(work: Work) -> None:
        work.run("echo before the end; exit 1")

    monkeypatch.setattr(first_hour, "LOGS", tmp_path)
    monkeypatch.setattr(first_hour, "PROGRAMS", (Program("bad", run), Program("good", lambda _work: None)))
    assert first_hour.main(["--times", "2"]) == 1
    assert "2 of 4 runs failed" in capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 2
    assert "before the end" in next(tmp_path.iterdir()).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_of_the_pages_works_as_written(program: Program) -> None:
    outcome = first_hour.run_once(program)
    assert outcome.failure is None, outcome.failure
