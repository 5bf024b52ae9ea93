"""The generators themselves: a generator that makes nothing of interest proves nothing."""

from __future__ import annotations

from random import Random

from tests.support.cases import case_from_json, case_to_json, keep_rows_in_time
from tests.support.generators.cases import CaseLimits, nothing_late, random_case, split_again
from tests.support.oracles.answers import DuckDbOracle

CASES = [random_case(seed) for seed in range(80)]
QUERIES = [query for case in CASES for query in case.queries]


def test_one_seed_makes_one_case() -> None:
    assert random_case(7) == random_case(7)


def test_a_case_survives_json() -> None:
    for case in CASES:
        text = case_to_json(case)
        assert case_to_json(case_from_json(text)) == text


def test_a_fair_share_of_queries_has_answers() -> None:
    oracles = {id(case): DuckDbOracle(case) for case in CASES}
    answered = [bool(oracles[id(case)].expected(query, 0)) for case in CASES for query in case.queries]
    assert sum(answered) > 0.4 * len(answered)


def test_every_form_of_time_is_made() -> None:
    texts = [query.sql for query in QUERIES]
    for mark in ("WITHIN", "BETWEEN", "window(", "INTERVAL", "milliseconds', '"):
        assert sum(mark in text for text in texts) > 5, mark
    whole = [text for text in texts if text.rsplit("WITHIN", 1)[-1].count(" ") == 2 and "WITHIN" in text]
    assert len(whole) > 5


def test_queries_join_two_to_five_relations() -> None:
    relation_counts = {sum(f" {alias}." in f" {query.sql}" for alias in "abcde") for query in QUERIES}
    assert relation_counts >= {2, 3, 4, 5}


def test_rows_come_late_and_in_time() -> None:
    kept = [keep_rows_in_time(case) for case in CASES]
    late = sum(count for k in kept for counts in k.late_counts.values() for count in counts)
    in_time = sum(len(rows) for k in kept for batches in k.rows.values() for rows in batches)
    assert late > 50
    assert in_time > 10 * late


def test_queries_come_and_go_in_mid_run() -> None:
    assert sum(query.created_at > 0 for query in QUERIES) > 20
    assert sum(query.dropped_at is not None for query in QUERIES) > 20


def test_another_split_holds_the_same_rows_and_none_is_late() -> None:
    rng = Random(1)
    for case in CASES[:20]:
        again = split_again(rng, case)
        kept, kept_again = keep_rows_in_time(nothing_late(case)), keep_rows_in_time(again)
        for stream in case.streams:
            rows, rows_again = (
                sorted(repr(row) for batch in k.rows[stream.name] for row in batch) for k in (kept, kept_again)
            )
            assert rows == rows_again


def test_limits_keep_late_rows_out() -> None:
    for seed in range(40):
        kept = keep_rows_in_time(random_case(seed, CaseLimits(late_rows=False, late_queries=False)))
        assert not any(count for counts in kept.late_counts.values() for count in counts)
