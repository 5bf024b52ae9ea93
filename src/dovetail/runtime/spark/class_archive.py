"""An archive of the classes that Spark loads, so that Java does not read, check and link them anew in every process.

Spark loads some 20,000 classes before the first row: without an archive that takes most of a start. The archive is one
file in the user's cache folder, named by all that it depends on: which Java, which Spark. So one that does not fit has
another name, a missing one changes nothing, and Java itself leaves out what has changed since.

    Java 17 to 24   -XX:ArchiveClassesAtExit     on top of the archive that comes with Java
    from Java 25    -XX:AOTCacheOutput           needs no other archive, and keeps also which methods are hot

`dovetail warm-up` makes it, in a process of its own: writing it takes a while when that process ends.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pyspark

from dovetail.core.cache_folder import cache_folder
from dovetail.runtime.spark.java import java_binary

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_FIRST_WITH_ARCHIVE, _FIRST_WITH_AOT = 17, 25
_VERSION = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)


@dataclass(frozen=True)
class ClassArchive:
    """`path` may not exist yet."""

    path: Path
    java_major: int

    @property
    def use_options(self) -> tuple[str, ...]:
        """What a JVM is told to use it; warnings about an archive that does not fit are of no use to anybody."""
        if self.java_major >= _FIRST_WITH_AOT:
            return (f"-XX:AOTCache={self.path}", "-Xlog:aot=off", "-Xlog:cds=off", "-Xlog:class+path=off")
        return (f"-XX:SharedArchiveFile={self.path}", "-Xlog:cds=off", "-Xlog:class+path=off")

    def make_options(self, draft: Path) -> tuple[str, ...]:
        """What a JVM is told to write such an archive when it ends."""
        if self.java_major >= _FIRST_WITH_AOT:
            return (f"-XX:AOTCacheOutput={draft}", "-Xlog:aot=off", "-Xlog:cds=off")
        return (f"-XX:ArchiveClassesAtExit={draft}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def class_archive() -> ClassArchive | None:
    """The one for the Java that a session of this process would start; None where none can be made."""
    java = java_binary()
    if java is None:
        return None
    home = java.resolve().parent.parent
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = _VERSION.search(release)
    major = int(found[1]) if found else 0
    has_base = any((home / "lib" / "server").glob("classes*.jsa"))
    if major < _FIRST_WITH_ARCHIVE or (major < _FIRST_WITH_AOT and not has_base):
        return None
    folder = cache_folder() / "java"
    # Spaces would end the option: Spark's launcher splits them.
    if any(letter.isspace() for letter in str(folder)):
        return None
    return ClassArchive(folder / f"{_fingerprint(home, release)}.jsa", major)


def archive_options() -> tuple[str, ...]:
    """Options of Java for a driver that starts now: those that use what `dovetail warm-up` archived, if it is there."""
    archive = class_archive()
    return archive.use_options if archive is not None and archive.path.is_file() else ()


def _fingerprint(home: Path, release: str) -> str:
    # As Spark's launcher finds it, whatever link to the environment this process came by.
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent).resolve() / "jars"
    jar_times = sorted((jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars.glob("*.jar"))
    known = (str(home), release, str(jars), jar_times, pyspark.__version__)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:24]
