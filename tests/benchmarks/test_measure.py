"""Times: the best run counts, and a stopped run never passes for a finished one."""

from __future__ import annotations

import pytest

from benchmarks.measure import RunTime, Timing, describe_timing, percentile
from benchmarks.options import BenchError, BenchOptions
from benchmarks.workbench import Measured, fastest, ratio_to


def test_the_best_of_repeats_counts() -> None:
    timing = Timing((RunTime(3.0), RunTime(2.0), RunTime(4.0)))
    assert timing.seconds == 2.0
    assert timing.spread == [2.0, 3.0, 4.0]


def test_a_finished_run_beats_a_stopped_one_that_took_less() -> None:
    timing = Timing((RunTime(2.0, done_share=0.5), RunTime(5.0)))
    assert timing.is_finished
    assert timing.finished_seconds == 5.0


def test_a_stopped_run_has_no_time_and_says_how_far_it_came() -> None:
    timing = Timing((RunTime(2.0, done_share=0.25),))
    assert timing.finished_seconds is None
    assert describe_timing(timing) == "2.00 s; stopped, 25% done"


def test_the_fastest_batch_size_is_a_finished_one() -> None:
    stopped = Measured(Timing((RunTime(1.0, done_share=0.9),)), seconds_per_batch=1, is_equal=True)
    slow = Measured(Timing((RunTime(9.0),)), seconds_per_batch=2, is_equal=True)
    quick = Measured(Timing((RunTime(8.0),)), seconds_per_batch=5, is_equal=True)
    assert fastest([stopped, slow, quick]) is quick
    assert fastest([stopped, slow]) is slow


def test_the_ratio_to_a_stopped_peer_counts_only_the_time_it_ran() -> None:
    peer = Measured(Timing((RunTime(10.0, done_share=0.1),)), seconds_per_batch=1, is_equal=True)
    ours = Measured(Timing((RunTime(2.0),)), seconds_per_batch=1, is_equal=True)
    assert ratio_to(peer, ours) == 5.0
    assert peer.rows_per_s(1000) == 10


@pytest.mark.parametrize(("share", "expected"), [(0.5, 5), (0.9, 9), (1.0, 10), (0.01, 1)])
def test_percentiles_are_values_that_were_measured(share: float, expected: int) -> None:
    assert percentile(list(range(10, 0, -1)), share) == expected


@pytest.mark.parametrize("broken", [{"rows": 0}, {"time_limit_s": 0.0}, {"cores": 0}, {"repeats": 0}])
def test_impossible_options_are_refused(broken: dict[str, int]) -> None:
    with pytest.raises(BenchError):
        BenchOptions(**broken)  # type: ignore[arg-type]


def test_a_given_number_of_rows_wins_over_quick() -> None:
    assert BenchOptions(rows=7, quick=True).rows_or(100, 10) == 7
    assert BenchOptions(quick=True).rows_or(100, 10) == 10
    assert BenchOptions().rows_or(100, 10) == 100
