"""docs/tutorial.md runs from top to bottom, and every block prints what stands below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

PAGE = Path(__file__).parent.parent / "docs" / "tutorial.md"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.spark
def test_every_block_prints_what_the_page_shows(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark.version.startswith("4.")
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) > 8
    names: dict[str, Any] = {}
    for program, shown in blocks:
        capsys.readouterr()
        exec(compile(program, PAGE.name, "exec"), names)  # noqa: S102 - our own text
        if shown:
            assert capsys.readouterr().out == shown
