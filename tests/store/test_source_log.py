"""Spark's folder without Spark: what is noted of it batch by batch makes it again, from nothing or from ruins."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path

import pytest

from dovetail.core.errors import DamagedFile
from dovetail.store.chain import Chain
from dovetail.store.commit import Draft, no_step
from dovetail.store.manifest import SourceLog
from dovetail.store.source_log import mend_spark_dir, read_source_log
from dovetail.store.state_record import State

INTERVAL = 3
BATCHES = 8


def line(number: int) -> str:
    return json.dumps({"path": f"file:///in/{number}.parquet", "timestamp": 1, "batchId": number})


def write(path: Path, text: str) -> None:
    """As Hadoop does: with checksums beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    crc = b"".join(zlib.crc32(text.encode()[at : at + 512]).to_bytes(4, "big") for at in range(0, len(text), 512))
    path.with_name(f".{path.name}.crc").write_bytes(b"crc\0\0\0\2\0" + crc)


def plan(folder: Path, batch: int) -> None:
    """As Spark does before a batch: every third log of a source has all files so far."""
    write(folder / "metadata", '{"id":"1"}')
    write(folder / "offsets" / str(batch), f'v1\n{{"conf":{{}}}}\n{{"logOffset":{batch}}}\n{{"t":{{"0":{batch}}}}}')
    is_compact = (batch + 1) % INTERVAL == 0
    lines = [line(number) for number in range(0 if is_compact else batch, batch + 1)]
    write(folder / "sources" / "0" / f"{batch}{'.compact' if is_compact else ''}", "\n".join(["v1", *lines]))
    if batch == 0:
        write(folder / "sources" / "1" / "0", '\0v1\n{"t":{"0":0}}')


def commit(chain: Chain, batch: int, log: SourceLog) -> None:
    Draft(State(batch, (), {}), (), (), source_log=log).prepare(chain, no_step).commit(chain, lambda: 0.0, no_step)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    chain = Chain(tmp_path, syncs=False)
    for batch in range(BATCHES):
        plan(tmp_path / "spark", batch)
        commit(chain, batch, read_source_log(tmp_path, batch, chain.source_log_before(batch)))
        write(tmp_path / "spark" / "commits" / str(batch), "v1\n{}")
    return tmp_path


def mend(root: Path) -> None:
    chain = Chain(root, syncs=False)
    chain.open()
    mend_spark_dir(chain)


def needed(root: Path) -> dict[str, str]:
    """What Spark reads when it goes on after the last batch."""
    names = ["metadata", "offsets/6", "offsets/7", "sources/0/5.compact", "sources/0/6", "sources/0/7", "sources/1/0"]
    return {name: (root / "spark" / name).read_text() for name in names}


def test_a_manifest_has_only_what_is_new(root: Path) -> None:
    chain = Chain(root, syncs=False)
    chain.open()
    assert chain.newest is not None
    assert set(chain.newest.source_log.files) == {"offsets/7", "sources/0/7"}
    assert chain.newest.source_log.upto == {"0": 7, "1": 0}
    before = chain.source_log_before(5)
    compact = read_source_log(root, 5, before).files["sources/0/5.compact"]
    assert compact == "\n".join(["v1", line(5)])


def test_a_whole_folder_is_left_alone(root: Path) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    mend(root)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_a_folder_that_is_gone_is_made_anew(root: Path) -> None:
    before = needed(root)
    shutil.rmtree(root / "spark")
    mend(root)
    assert needed(root) == before
    mend(root)
    assert needed(root) == before


@pytest.mark.parametrize(
    "path", ["metadata", "offsets/6", "offsets/7", "sources/0/5.compact", "sources/0/6", "sources/0/7", "sources/1/0"]
)
@pytest.mark.parametrize("how", ["delete", "empty", "flip"])
def test_a_damaged_file_is_written_anew_and_old_checksums_go(root: Path, path: str, how: str) -> None:
    before = needed(root)
    file = root / "spark" / path
    if how == "delete":
        file.unlink()
    else:
        file.write_text("" if how == "empty" else file.read_text().replace("1", "3").replace("v3", "v1"))
    mend(root)
    assert needed(root) == before
    assert not (file.parent / f".{file.name}.crc").exists() or (how == "flip" and before[path] == file.read_text())


def test_what_is_planned_beyond_the_newest_manifest_is_planned_again(root: Path) -> None:
    before = needed(root)
    plan(root / "spark", BATCHES)
    write(root / "spark" / "commits" / str(BATCHES), "v1\n{}")
    mend(root)
    assert needed(root) == before
    spark = root / "spark"
    assert not list(spark.glob(f"*/{BATCHES}"))
    assert not list(spark.glob(f"sources/0/*{BATCHES}*"))


def test_a_torn_commit_is_removed_and_a_sound_one_stays(root: Path) -> None:
    (root / "spark" / "commits" / "7").write_text("")
    mend(root)
    assert not (root / "spark" / "commits" / "7").exists()
    assert (root / "spark" / "commits" / "6").exists()


def test_an_old_manifest_that_noted_nothing_needs_sparks_own_log(tmp_path: Path) -> None:
    chain = Chain(tmp_path, syncs=False)
    commit(chain, 0, SourceLog())
    with pytest.raises(DamagedFile, match="offsets/0 is missing: lost is how far"):
        mend_spark_dir(chain)
    plan(tmp_path / "spark", 0)
    mend_spark_dir(chain)
    assert (tmp_path / "spark" / "offsets" / "0").exists()
    # From the next batch on everything is noted, what was there before included.
    plan(tmp_path / "spark", 1)
    log = read_source_log(tmp_path, 1, chain.source_log_before(1))
    assert set(log.files) == {"metadata", "offsets/1", "sources/0/0", "sources/0/1", "sources/1/0"}


def test_before_the_first_commit_only_torn_files_go(tmp_path: Path) -> None:
    chain = Chain(tmp_path, syncs=False)
    plan(tmp_path / "spark", 0)
    mend_spark_dir(chain)
    assert (tmp_path / "spark" / "offsets" / "0").exists()
    (tmp_path / "spark" / "sources" / "0" / "0").write_text("v1")
    mend_spark_dir(chain)
    assert not (tmp_path / "spark" / "offsets" / "0").exists()


def test_offsets_that_were_written_anew_before_a_start_are_noted_with_the_next_batch(tmp_path: Path) -> None:
    chain = Chain(tmp_path, syncs=False)
    folder = tmp_path / "spark"
    plan(folder, 0)
    commit(chain, 0, read_source_log(tmp_path, 0, chain.source_log_before(0)))
    more = (folder / "offsets" / "0").read_text() + '\nback:{"logOffset":4}'
    write(folder / "offsets" / "0", more)
    plan(folder, 1)
    commit(chain, 1, read_source_log(tmp_path, 1, chain.source_log_before(1)))
    shutil.rmtree(folder)
    mend_spark_dir(chain)
    assert (folder / "offsets" / "0").read_text() == more
