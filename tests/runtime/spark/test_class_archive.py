"""The archive of Spark's classes is used where it fits, and nothing changes where it is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dovetail.cli import warm_up
from dovetail.cli.main import app
from dovetail.core.cache_folder import cache_folder
from dovetail.runtime.spark.class_archive import JAVA_OPTIONS, ClassArchive, archive_options, class_archive
from dovetail.runtime.spark.local_session import _with_java_options


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of Java, 17 unless a test writes otherwise, and a cache folder of the test's own."""
    home = tmp_path / "java"
    for folder in (home / "bin", home / "lib" / "server"):
        folder.mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n", encoding="utf-8")
    (home / "bin" / "java").chmod(0o755)
    (home / "lib" / "server" / "classes.jsa").touch()
    write_release(home, "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return home


def write_release(home: Path, version: str) -> None:
    (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n', encoding="utf-8")


def found() -> ClassArchive:
    archive = class_archive()
    assert archive is not None
    return archive


def test_it_is_used_only_where_it_is(java: Path) -> None:
    assert java.exists()
    assert archive_options() == ()
    without = _with_java_options({"spark__driver__memory": "1g"})
    assert (without["spark.driver.memory"], "Archive" in without[JAVA_OPTIONS]) == ("1g", False)
    found().path.parent.mkdir(parents=True)
    found().path.touch()
    assert archive_options()[0] == f"-XX:SharedArchiveFile={found().path}"
    assert found().path.is_relative_to(cache_folder())


def test_options_of_the_user_stay(java: Path) -> None:
    assert java.exists()
    found().path.parent.mkdir(parents=True)
    found().path.touch()
    options = _with_java_options({"spark__driver__extraJavaOptions": "-Xss4m -Dx=y"})[JAVA_OPTIONS]
    assert options.endswith(" -Xss4m -Dx=y")
    assert "SharedArchiveFile" in options


def test_another_java_or_version_has_an_archive_of_its_own(java: Path) -> None:
    first = found().path
    write_release(java, "17.0.16")
    assert found().path != first


def test_a_java_from_25_on_needs_no_archive_of_its_own_and_an_older_one_does(java: Path) -> None:
    (java / "lib" / "server" / "classes.jsa").unlink()
    assert class_archive() is None
    write_release(java, "25.0.2")
    assert found().use_options[0] == f"-XX:AOTCache={found().path}"
    assert found().make_options(Path("/draft"))[0] == "-XX:AOTCacheOutput=/draft"


@pytest.mark.parametrize("release", ["", 'JAVA_VERSION="11.0.2"', 'JAVA_VERSION="1.8.0"'])
def test_a_java_that_is_unknown_or_too_old_has_none(java: Path, release: str) -> None:
    (java / "release").write_text(release, encoding="utf-8")
    assert class_archive() is None
    (java / "release").unlink()
    assert class_archive() is None


def test_a_folder_that_options_cannot_name_is_passed_over(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert java.exists()
    monkeypatch.setenv("XDG_CACHE_HOME", "/tmp/with a space")  # noqa: S108 - nothing is written there
    assert class_archive() is None


def test_what_cannot_be_warmed_up_is_named_and_is_no_error(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert java.exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path(os.devnull, "cache")))
    monkeypatch.setattr(warm_up, "_practise", lambda *_arguments: None)
    answer = CliRunner().invoke(app, ["warm-up"])
    assert answer.exit_code == 0, answer.output
    assert "not done" in answer.output
    assert warm_up.NOTHING_LOST in answer.output
