"""What the pages let a user run, each as one program: the page's own text, and what it must print."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tools.first_hour.blocks import ROOT, Command, blocks_of, commands_of
from tools.first_hour.process import PATIENCE_S, Process, ProgramFailed
from tools.first_hour.work import Work

ROW = r"^\|\s*\d|^\s*\d+\s+\d+$|^\{|^\d{4}-\d\d-\d\d "
"""A row of `show()`, of a tail, of events and of pandas."""
_MARK = "\x1eblock"
_TOKEN = r"dvt_[A-Za-z0-9_-]+"  # noqa: S105 - what one looks like
_SERVES = r"^Dovetail serves"
TAILED_ROWS = 12
_SERVICE_PORT = threading.Lock()
"""The pages' services listen on one port, so they run one at a time."""


@dataclass(frozen=True)
class Program:
    """`run` raises what a user would have stumbled over; `serves`: on the port that all pages name."""

    name: str
    run: Callable[[Work], None]
    serves: bool = False


def _readme(work: Work) -> None:
    (program,) = (block.text for block in blocks_of("README.md") if block.language == "python")
    work.rows_from(work.python(program), r"^\|\s*\d\|\s*9\d\|$")


def _tutorial(work: Work) -> None:
    """Pasted block after block; below each, exactly what the page shows."""
    blocks = blocks_of("docs/tutorial.md")
    programs = [block for block in blocks if block.language == "python"]
    shown = {block.line: below.text for block, below in pairwise(blocks) if below.language == "text"}
    text = "\n".join(f"print({_MARK!r}, flush=True)\n{block.text}" for block in programs)
    done = work.python(text)
    printed = done.output.split(f"{_MARK}\n")[1:]
    for block, found in zip(programs, printed, strict=True):
        if block.line in shown and found != shown[block.line]:
            raise ProgramFailed(f"{block.place} printed\n{found}\nand the page shows\n{shown[block.line]}")
    work.rows_from(done, r"^\|\s*\d\|")


def _example(file: str) -> Callable[[Work], None]:
    def run(work: Work) -> None:
        work.rows_from(work.run(f"exec .venv/bin/python examples/{file}"), ROW)

    return run


def _help(work: Work) -> None:
    done = work.run("make help")
    for command in ("demo", "test", "first-hour"):
        if not re.search(rf"^  make {command} ", done.output, re.MULTILINE):
            raise ProgramFailed(f"make help does not list {command}")


def _demo(work: Work) -> None:
    work.check_set_up()
    # It offers its service at the usual port, too, if nobody has it.
    with _SERVICE_PORT:
        work.rows_from(work.run("make demo"), r"answers")


@contextlib.contextmanager
def _served(work: Work, command: str) -> Iterator[Process]:
    """The service of a page, until the block ends; its token is in DOVETAIL_TOKEN, and in TOKEN, as one page has it."""
    with _SERVICE_PORT:
        service = work.start(f"exec {command}")
        try:
            service.await_line(_SERVES)
            found = re.search(_TOKEN, service.await_line(_TOKEN))
            work.env["DOVETAIL_TOKEN"] = work.env["TOKEN"] = found[0] if found else ""
            yield service
            service.interrupt()
        finally:
            service.end()


def _use(work: Work, commands: list[Command]) -> None:
    """One after the other; what goes on for ever is ended with Ctrl-C once it showed something."""
    for command in commands:
        if command.text.startswith("export "):
            continue  # the token, which is there already
        process = work.start(f"exec {command.text}")
        if re.search(r"query tail \w+ *(#|$)|/events$", command.text):
            process.await_line(r"^\s*\d+ +\d+$|^data: .*\"rows\":\[\{", TAILED_ROWS if "tail" in command.text else 2)
            work.rows_from(process, r"^\s*\d+ +\d+$|^data: .*\"rows\":\[\{")
            _cut(process)
        elif command.text.endswith("top"):
            process.await_line(r"rows/s")
            _cut(process)
        else:
            done = process.finish()
            if "create" not in command.text and re.search(ROW, done.output, re.MULTILINE):
                work.rows_from(done, ROW)


def _cut(process: Process) -> None:
    """Ctrl-C; curl says 130 to it, our own commands end well."""
    is_ours = "dovetail" in process.command
    if is_ours:
        process.interrupt()
    else:
        process.end()


def _readme_service(work: Work) -> None:
    (block,) = (block for block in blocks_of("README.md") if "dovetail serve" in block.text)
    serve, *others = commands_of(block.text)
    with _served(work, serve.text):
        _use(work, others)


def _tutorial_service(work: Work) -> None:
    (block,) = (block for block in blocks_of("docs/tutorial.md") if block.language == "console")
    with _served(work, ".venv/bin/dovetail serve examples/serve.yaml"):
        _use(work, commands_of(block.text))


def _service_page(work: Work) -> None:
    first, tokens = (block for block in blocks_of("docs/service.md") if block.language == "console")
    check, serve, *curls = commands_of(first.text)
    work.run(check.text)
    with _served(work, serve.text) as service:
        shown = "\n".join(serve.shown)
        for line in (re.sub(_TOKEN, "dvt_...", line) for _, line in list(service.lines)[: len(serve.shown)]):
            if line not in shown:
                raise ProgramFailed(f"docs/service.md does not show {line!r}")
        _use(work, curls)
    for command in commands_of(tokens.text):
        work.run(f"cd examples && {command.text}")


_FILES_YAML = """
checkpoint_dir: {folder}/files-checkpoint
trigger: 1 second
streams:
  views: &files
    format: json
    columns: {{usr: bigint, page: string, ts: timestamp}}
    event_time: ts
    lateness: 5 seconds
    options: {{path: {folder}/views}}
  clicks:
    format: json
    columns: {{usr: bigint, page: string, ts: timestamp}}
    event_time: ts
    lateness: 5 seconds
    options: {{path: {folder}/clicks}}
"""


def _clients(work: Work) -> None:
    """The command line's and the client's page, over streams as they name them: a file a second for each."""
    (listing,) = (block for block in blocks_of("docs/cli.md") if block.language == "console")
    (program,) = (block for block in blocks_of("docs/client.md") if block.language == "python")
    for name in ("views", "clicks"):
        (work.folder / name).mkdir()
    config = work.folder / "files.yaml"
    config.write_text(_FILES_YAML.format(folder=work.folder).replace(" &files", ""), encoding="utf-8")
    ended = threading.Event()
    feeding = threading.Thread(target=_feed, args=(work.folder, ended), daemon=True)
    feeding.start()
    try:
        with _served(work, f".venv/bin/dovetail serve {config.name}"):
            _await_batch(work.folder / "files-checkpoint")
            _use(work, commands_of(listing.text))
            work.rows_from(work.python(program.text), r"^\{'usr'")
    finally:
        ended.set()
        feeding.join()


def _await_batch(checkpoint: Path) -> None:
    """The pages speak of a service that runs: one whose first batch is still to come keeps `--wait` waiting."""
    deadline = time.monotonic() + PATIENCE_S
    while not any((checkpoint / "manifests").glob("*.json")):
        if time.monotonic() > deadline:
            raise ProgramFailed("the service commits no batch")
        time.sleep(0.5)


def _feed(folder: Path, ended: threading.Event) -> None:
    second = 0
    while not ended.wait(0.5):
        for name in ("views", "clicks"):
            moment = f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
            rows = [json.dumps({"usr": usr, "page": "home", "ts": moment}) for usr in range(5)]
            part = folder / f"{name}.part"
            part.write_text("\n".join(rows), encoding="utf-8")
            part.rename(folder / name / f"{second:06}.json")
        second += 1


def _doctest(work: Work) -> None:
    """The examples of the reference that a prompt stands before."""
    texts = [block.text for block in blocks_of("docs/api.md") if block.text.startswith(">>> ")]
    imports = ">>> import pyarrow as pa\n>>> from dovetail.testing.local_session import LocalSession\n"
    (work.folder / "api.txt").write_text("\n".join((imports, *texts)), encoding="utf-8")
    work.run("exec .venv/bin/python -m doctest api.txt")


def _without_pyspark(work: Work) -> None:
    """What docs/install.md shows where an extra is missing."""
    (shown,) = (block.text for block in blocks_of("docs/install.md") if block.text.startswith("MissingPackage"))
    program = (
        "import sys\nsys.modules['pyspark'] = None\ntry:\n    from dovetail import Session\n"
        "except Exception as error:\n    print(f'{type(error).__name__}: {error}')\n"
    )
    printed = work.python(program).output
    if printed != shown:
        raise ProgramFailed(f"docs/install.md shows\n{shown}\nand it is\n{printed}")


EXAMPLES = tuple(sorted(path.name for path in (ROOT / "examples").glob("*.py")))
PROGRAMS = (
    Program("README: from Python", _readme),
    Program("README: as a service", _readme_service, serves=True),
    Program("README: make help", _help),
    Program("README: make demo", _demo, serves=True),
    *(Program(f"examples/{file}", _example(file)) for file in EXAMPLES),
    Program("tutorial", _tutorial),
    Program("tutorial: as a service", _tutorial_service, serves=True),
    Program("service page", _service_page, serves=True),
    Program("command line and client", _clients, serves=True),
    Program("reference: with a prompt", _doctest),
    Program("install: without an extra", _without_pyspark),
)
