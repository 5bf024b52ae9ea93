"""Which Python the workers run."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def use_own_interpreter(spark: SparkSession) -> None:
    """On a local master let workers run this interpreter, unless the user chose one.

    Spark takes the first `python3` on the PATH; run from a virtual environment that is not activated, that one
    has neither Dovetail nor Arrow. On a cluster the executors' Python is the administrator's choice.
    """
    context = spark.sparkContext
    is_chosen = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
    if (context.master or "").startswith("local") and not is_chosen:
        context.pythonExec = sys.executable
