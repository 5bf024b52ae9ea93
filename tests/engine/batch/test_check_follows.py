from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.core.errors import BatchDiffers
from dovetail.engine.batch.check_follows import check_follows
from dovetail.store.chain import Chain
from dovetail.store.commit import Draft, no_step
from dovetail.store.manifest import Arrived, SourceLog
from dovetail.store.state_record import State


def log(batch: int, file: str = "x") -> SourceLog:
    return SourceLog({f"offsets/{batch}": '{"logOffset":1}', f"sources/0/{batch}": file}, {}, {"0": batch})


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    chain = Chain(tmp_path, syncs=False)
    for batch in range(3):
        draft = Draft(State(batch, (), {}), (), (), source_log=log(batch))
        draft.prepare(chain, no_step).commit(chain, lambda: 0.0, no_step)
    return chain


@pytest.mark.parametrize("batch", [1, 2])
def test_a_committed_batch_may_come_again_with_the_same_rows(chain: Chain, batch: int) -> None:
    check_follows(Arrived({}, log(batch)), batch, chain)


def test_a_committed_batch_that_comes_again_with_another_file_is_refused(chain: Chain) -> None:
    with pytest.raises(BatchDiffers, match=r"batch 2 is committed.*other rows: sources/0/2") as caught:
        check_follows(Arrived({}, log(2, "y")), 2, chain)
    assert caught.value.hint


def test_a_committed_batch_that_comes_again_without_its_list_of_files_is_refused(chain: Chain) -> None:
    with pytest.raises(BatchDiffers, match="sources/0/2"):
        check_follows(Arrived({}, SourceLog({"offsets/2": '{"logOffset":1}'})), 2, chain)


def test_a_batch_that_leaves_one_out_is_refused(chain: Chain) -> None:
    check_follows(Arrived({}, log(3)), 3, chain)
    with pytest.raises(BatchDiffers, match="batch 3 was never committed"):
        check_follows(Arrived({}, log(4)), 4, chain)


def test_nothing_is_asked_of_batches_that_say_nothing_of_their_source(chain: Chain) -> None:
    for batch in (0, 3, 9):
        check_follows(Arrived(), batch, chain)


def test_a_committed_batch_may_come_again_with_a_source_that_had_been_left_out(tmp_path: Path) -> None:
    chain = Chain(tmp_path, syncs=False)
    text = 'v2\n{"conf":{}}\na:{"logOffset":1}'
    draft = Draft(State(0, (), {}), (), (), source_log=SourceLog({"offsets/0": text}))
    draft.prepare(chain, no_step).commit(chain, lambda: 0.0, no_step)
    check_follows(Arrived({}, SourceLog({"offsets/0": f'{text}\nb:{{"logOffset":4}}'})), 0, chain)
    with pytest.raises(BatchDiffers, match="offsets/0"):
        check_follows(Arrived({}, SourceLog({"offsets/0": text.replace(":1}", ":2}")})), 0, chain)
