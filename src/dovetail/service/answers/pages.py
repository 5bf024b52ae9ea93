"""Pages of a query's committed answers, read from their files.

Committed answers never change and files are in the order of their batches, so a place (batch, row) is a cursor that
stays true: pages neither overlap nor leave out a row, also over a restart.

Files of an updating query hold changes. Its current answer as of a batch is made of all changes up to it, in an order
that they alone decide; there a cursor (batch, row) is a row of the answer as of that batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from dovetail.engine.engine import Engine
from dovetail.query.answer_columns import answer_columns
from dovetail.service.access.refusals import BadRequest
from dovetail.store.layout import result_batch
from dovetail.store.manifest import ResultPart
from dovetail.store.read_answers import answer_schema, current_answers
from dovetail.store.result_parts import read_result_batches

_CURSOR = re.compile(r"(\d{1,18}):(\d{1,18})\Z", re.ASCII)
_ROWS_READ_AT_ONCE = 8_192


@dataclass(frozen=True, order=True)
class Cursor:
    """The next row to read: row `row` of batch `batch`."""

    batch: int
    row: int = 0

    def __str__(self) -> str:
        return f"{self.batch}:{self.row}"

    @staticmethod
    def parse(text: str) -> Cursor:
        found = _CURSOR.match(text)
        if found is None:
            raise BadRequest(f"{text!r} is no cursor", hint="use the «next» of another page as it is")
        return Cursor(int(found[1]), int(found[2]))


@dataclass(frozen=True)
class Page:
    """`next` is where the following page begins, now or when there is more."""

    table: pa.Table
    next: Cursor
    has_more: bool
    committed_batch: int


@dataclass(frozen=True)
class BatchAnswers:
    """The first rows of what one batch found, and how many there are."""

    batch: int
    table: pa.Table
    row_count: int


class AnswerReader:
    """Of one query; `engine` says which files are committed."""

    def __init__(self, engine: Engine, query_id: str) -> None:
        self._engine = engine
        self._id = query_id
        self._query = engine.queries.compiled(query_id)
        self._schema = answer_schema(answer_columns(self._query), engine.options.timezone)

    @property
    def is_updating(self) -> bool:
        return self._query.is_updating

    def current_page(self, cursor: Cursor | None, last: int | None, limit: int, to_batch: int | None) -> Page:
        """A page of the answer as of one batch: the cursor's, or `to_batch`, or the newest."""
        committed = self._engine.head.batch
        through = min(committed, cursor.batch if cursor else committed if to_batch is None else to_batch)
        files = [file for _, files in self._files(0, through) for file in files]
        table = current_answers(self._engine.root, self._query, files, self._engine.options.timezone)
        start = cursor.row if cursor else 0 if last is None else max(table.num_rows - last, 0)
        page = table.slice(start, limit)
        end = start + page.num_rows
        return Page(page, Cursor(max(through, 0), end), end < table.num_rows, committed)

    def page(self, start: Cursor, limit: int, to_batch: int | None = None) -> Page:
        # Before the files are listed: a batch that commits in between belongs to the next page.
        committed = self._engine.head.batch
        through = committed if to_batch is None else min(committed, to_batch)
        pieces: list[pa.RecordBatch] = []
        left, place = limit, start
        for batch, files in self._files(start.batch, through):
            skip = start.row if batch == start.batch else 0
            rows = sum(file.rows for file in files)
            pieces += self._read(files, skip, left)
            taken = min(left, max(rows - skip, 0))
            left -= taken
            place = Cursor(batch, skip + taken)
            if left == 0:
                break
        table = pa.Table.from_batches(pieces, self._schema)
        if left > 0:
            return Page(table, max(start, Cursor(through + 1)), has_more=False, committed_batch=committed)
        return Page(table, place, self._has_rows_from(place, through), committed)

    def last_rows(self, count: int) -> Cursor:
        """Where the newest `count` rows begin; by the files' row counts, so nothing is read."""
        missing = count
        for batch, files in reversed(list(self._files(0, self._engine.head.batch))):
            rows = sum(file.rows for file in files)
            if rows >= missing:
                return Cursor(batch, rows - missing)
            missing -= rows
        return Cursor(0)

    def batches(self, from_batch: int, row_limit: int) -> Iterator[BatchAnswers]:
        """Each committed batch with answers, the oldest first; read one at a time."""
        for batch, files in self._files(from_batch, self._engine.head.batch):
            table = pa.Table.from_batches(self._read(files, 0, row_limit), self._schema)
            yield BatchAnswers(batch, table, sum(file.rows for file in files))

    def _files(self, from_batch: int, through: int) -> Iterator[tuple[int, list[ResultPart]]]:
        """Files by batch; from the end, because most readers want what is new."""
        newest_first: list[tuple[int, list[ResultPart]]] = []
        for file in reversed(self._engine.answers.results(self._id)):
            batch = result_batch(file.path)
            if batch < from_batch:
                break
            if batch > through:
                continue
            if not newest_first or newest_first[-1][0] != batch:
                newest_first.append((batch, []))
            newest_first[-1][1].append(file)
        return ((batch, files[::-1]) for batch, files in reversed(newest_first))

    def _has_rows_from(self, place: Cursor, through: int) -> bool:
        return any(
            sum(file.rows for file in files) > (place.row if batch == place.batch else 0)
            for batch, files in self._files(place.batch, through)
        )

    def _read(self, files: list[ResultPart], skip: int, limit: int) -> list[pa.RecordBatch]:
        pieces: list[pa.RecordBatch] = []
        for file in files:
            if limit == 0:
                break
            if skip >= file.rows:
                skip -= file.rows
                continue
            with closing(read_result_batches(self._engine.root, file, _ROWS_READ_AT_ONCE)) as batches:
                for piece in batches:
                    wanted = piece.slice(skip, limit)
                    skip = max(skip - piece.num_rows, 0)
                    limit -= wanted.num_rows
                    if wanted.num_rows:
                        pieces.append(wanted.cast(self._schema))
                    if limit == 0:
                        break
        return pieces
