"""Bad rows at random places, with crashes and retries: everybody else's answers are those without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tests.support.bad_rows import AHEAD_US, BadRowCase, BadRowRun, Batch, random_bad_row_case
from tests.support.keep_failures import seeds_of

SEEDS = seeds_of(0, 1, 0.02)


def clean_answers(folder: Path, case: BadRowCase, batches: Sequence[Batch], *, ahead: str = "1 day") -> object:
    run = BadRowRun(folder, splits=case.splits, ahead=ahead)
    for batch in batches:
        run.push(batch)
    run.session.close()
    return run.answers()


@pytest.mark.parametrize("seed", SEEDS)
def test_bad_rows_change_no_answer_and_none_is_lost_or_doubled(tmp_path: Path, seed: int) -> None:
    case = random_bad_row_case(seed)
    run = BadRowRun(tmp_path / "mixed", rng=Random(seed), splits=case.splits)
    for batch in case.mixed:
        run.push(batch)
    assert run.answers() == clean_answers(tmp_path / "clean", case, case.good), seed
    for name in "ab":
        assert run.bad_values(name) == case.bad[name], seed
    run.session.vacuum()
    assert run.bad_values("a") == case.bad["a"], seed
    run.session.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_retried_rows_arrive_once_with_the_batch_that_takes_them(tmp_path: Path, seed: int) -> None:
    """Rows too far ahead are taken once that is allowed; impossible ones stay aside."""
    case, rng = random_bad_row_case(seed), Random(seed)
    run = BadRowRun(tmp_path / "mixed", rng=rng, splits=case.splits)
    at = rng.randrange(1, len(case.mixed))
    for number, batch in enumerate(case.mixed):
        if number == at:
            run.reopen("off")
            for name in "ab":
                run.session.retry_bad_rows(name)
                run.session.retry_bad_rows(name)
        run.push(batch)
    retried = {n: [row for batch in case.mixed[:at] for row in batch[n] if row[2] == AHEAD_US] for n in "ab"}
    usable = [
        {n: [row for row in batch[n] if is_possible(row[2]) and (number >= at or row[2] != AHEAD_US)] for n in "ab"}
        for number, batch in enumerate(case.mixed)
    ]
    expected = [*usable[:at], {n: [*retried[n], *usable[at][n]] for n in "ab"}, *usable[at + 1 :]]
    assert run.answers() == clean_answers(tmp_path / "clean", case, expected, ahead="off"), seed
    for name in "ab":
        impossible = [row[1] for batch in case.mixed for row in batch[name] if not is_possible(row[2])]
        assert sorted(run.bad_values(name).elements()) == sorted(impossible), seed
    run.session.close()


def is_possible(time_us: int | None) -> bool:
    return time_us is None or abs(time_us) <= AHEAD_US
