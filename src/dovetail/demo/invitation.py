"""What to type in a second terminal, so that it can be copied as it is."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

EXAMPLE_NAME = "mine"
EXAMPLE_SQL = (
    "SELECT W.usr_id, W.vid, C.comment",
    "FROM views W JOIN comments C ON C.usr_id = W.usr_id",
    "WHERE W.geo = 'JP' AND W.duration > 50 AND C.comment = 'love it'",
    "WITHIN 4 SECONDS",
)
"""By line, for 80 columns; its answers are few enough for eyes to follow."""


def invitation() -> list[str]:
    command = own_command()
    first, *middle, last = EXAMPLE_SQL
    return [
        "Ask a question of your own, in a second terminal:",
        f'  {command} query create {EXAMPLE_NAME} "{first}',
        *(f"    {line}" for line in middle),
        f'    {last}"',
        f"  {command} query tail {EXAMPLE_NAME}",
    ]


def own_command() -> str:
    """How this very program was called, as short as a shell in the same folder allows."""
    called = Path(sys.argv[0])
    if called.stem != "dovetail":
        return f"{shlex.quote(sys.executable)} -m dovetail.cli.main"
    found = shutil.which("dovetail")
    if found is not None and Path(found).samefile(called):
        return "dovetail"
    relative = os.path.relpath(called)
    return shlex.quote(str(called) if relative.startswith("..") else relative)
