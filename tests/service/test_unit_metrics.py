"""Partitions and their load among the figures for Prometheus."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dovetail.service.metrics import Metrics
from dovetail.testing.local_session import LocalSession


def metrics_after_a_batch(folder: Path, **options: object) -> str:
    session = LocalSession(folder, **options)
    session.create_stream("a", pa.schema([("k", pa.int64())]))
    session.create_query("SELECT x.k FROM a x JOIN a y ON x.k = y.k", "q")
    session.push({"a": pa.table({"k": [1, 2, 3]})})
    text = Metrics(session.engine).text().decode()
    session.close()
    return text


def test_a_fixed_number_of_partitions_is_told_without_a_load(tmp_path: Path) -> None:
    text = metrics_after_a_batch(tmp_path, partitions=3)
    assert "\ndovetail_partitions 3.0\n" in text
    assert "dovetail_unit_load" not in text


def test_an_elastic_one_is_told_with_its_load(tmp_path: Path) -> None:
    text = metrics_after_a_batch(tmp_path, partitions=3, elastic=True, max_bytes_per_partition=1000)
    assert "\ndovetail_partitions 3.0\n" in text
    assert '\ndovetail_unit_load{kind="memory"} ' in text
    assert '\ndovetail_unit_load{kind="hottest"} ' in text
    assert 'kind="time"' not in text
    assert "\ndovetail_partition_changes 0.0\n" in text
    assert "dovetail_executors" not in text
