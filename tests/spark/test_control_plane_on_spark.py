"""Queries are created, replaced, altered and dropped while a real session runs and restarts: the model's changes, the
oracle's answers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.control.on_spark import SparkHost
from tests.support.control.runs import ControlRun
from tests.support.control.steps import CONTROL_LIMITS, Ask, ControlProgram, Push, Restart, calm, random_program
from tests.support.generators.queries import QueryLimits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LIMITS = replace(CONTROL_LIMITS, min_streams=1, max_streams=1, queries=QueryLimits(2))
SEEDS = (0, 100)


def eventful_program(seed: int) -> ControlProgram:
    """The first one from `seed` on that has a bit of everything and is short."""
    while True:
        program = calm(random_program(seed, 14, LIMITS))
        pushes, restarts = (sum(isinstance(step, kind) for step in program.steps) for kind in (Push, Restart))
        verbs = {(step.verb, step.is_lenient) for step in program.steps if isinstance(step, Ask)}
        if 4 <= pushes <= 6 and 1 <= restarts <= 2 and {("create", True), ("drop", False)} <= verbs:
            return program
        seed += 1


@pytest.mark.parametrize("seed", SEEDS)
def test_changes_while_it_runs_take_effect_once_and_answers_are_those_of_batch_sql(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    program = eventful_program(seed)
    host = SparkHost(spark, program.case, tmp_path)
    try:
        run = ControlRun(program.case, host)
        for step in program.steps:
            run.do(step)
        run.check_answers()
    finally:
        host.close()
    assert any(query.created for query in run.queries)
