"""What IPython shows of our errors and texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from dovetail.core.shown_text import ShownText

ROOT = Path(__file__).parent.parent.parent

SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell(config=config, ipython_dir=sys.argv[1])
for cell in json.load(sys.stdin):
    with capture_output() as shown:
        shell.run_cell(cell)
    print(json.dumps(shown.stdout))
"""

SESSION = """
import pyarrow as pa
from dovetail.core.shown_text import ShownText
from dovetail.testing.local_session import LocalSession
session = LocalSession({folder!r})
schema = pa.schema([("usr", pa.int64()), ("amount", pa.int64())])
for name in ("orders", "payments"):
    session.create_stream(name, schema)
"""
MISSPELLED = """sql = "SELECT o.amout FROM orders o JOIN payments p ON o.usr = p.usr"
session.create_query(sql, "q")"""


def shown_by_ipython(folder: Path, cells: list[str]) -> list[str]:
    """What a real shell prints of each cell. In a process of its own: a shell changes excepthook and more."""
    run = subprocess.run(
        [sys.executable, "-c", SHELL, str(folder)],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "IPYTHONDIR": str(folder)},
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_a_notebook_shows_errors_and_texts_in_a_few_lines(tmp_path: Path) -> None:
    cells = [MISSPELLED, "1 / 0", "ShownText('one\\ntwo')", "[ShownText('one\\ntwo')]"]
    _, misspelled, other, text, texts = shown_by_ipython(
        tmp_path, [SESSION.format(folder=str(tmp_path / "checkpoint")), *cells]
    )
    assert misspelled.splitlines() == [
        "UnknownName: unknown column 'o.amout'",
        "  at: line 1, column 8",
        "  instead: did you mean amount?",
        '  from: line 2: session.create_query(sql, "q")',
    ]
    assert "Traceback" in other
    assert text.splitlines()[-2:] == ["one", "two"]
    assert "\\n" not in texts


def test_a_shown_text_is_a_string() -> None:
    text = ShownText("a < b\nc")
    assert text == "a < b\nc"
    assert isinstance(text, str)
    assert text._repr_html_() == "<pre>a &lt; b\nc</pre>"
