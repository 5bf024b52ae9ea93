"""A source without rows, which makes Spark run a batch while all streams are silent: changes take effect with it.

Spark runs a batch when a source has something new. This one watches a folder: a file in it is a wish for a batch. It is
one more named source of the streaming query, so such a batch has its number and its offsets in Spark's log as every
other, and is run again as any other after a crash.
"""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dovetail.core.private_files import private_folder, write_private
from dovetail.query.stream_spec import CONTROL
from dovetail.store.layout import control_dir


class ControlSource:
    """Thread-safe. Files are removed two commits after they were made: until then Spark may still look for them."""

    def __init__(self, root: Path) -> None:
        self._folder = control_dir(root)
        self._lock = threading.Lock()
        self._new: list[Path] = []
        self._old: list[Path] = []

    def wake(self) -> None:
        """Have a batch run, soon; a wish that no commit has answered yet stands for this one, too."""
        with self._lock:
            if not self._new:
                path = private_folder(self._folder) / uuid.uuid4().hex
                write_private(path, "a batch, please\n")
                self._new.append(path)

    def note_commit(self) -> None:
        with self._lock:
            for path in self._old:
                path.unlink(missing_ok=True)
            self._old, self._new = self._new, []

    def open(self, spark: SparkSession, like: DataFrame) -> DataFrame:
        """A streaming DataFrame with the columns of another one, and no row."""
        private_folder(self._folder)
        reader = spark.readStream.format("text").option("ignoreMissingFiles", "true").name(CONTROL)
        columns = [f"CAST(NULL AS {field.dataType.simpleString()}) AS `{field.name}`" for field in like.schema]
        return reader.load(str(self._folder)).where("false").selectExpr(*columns)
