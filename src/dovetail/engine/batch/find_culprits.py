"""A batch whose tasks failed without saying whose fault it is runs again with fewer queries, until that is known.

    q1 q2 q3 q4 | q5 new        fails
    q1 q2 q3 q4                 runs: it is q5, and this is the batch without it

    q1 q2 q3 q4                 fails, and nobody is new
    q1 q2 q3                    fails: it is not the youngest alone
    q1 q2                       runs: it is q3
    q1 q2    q4                 runs: this is the batch

Nothing is committed before a batch is settled, so each try begins at the state that the last batch left. Whoever came
last may not have met a row before, and is looked at first: one that is among the k youngest of n queries is found in
about log k tries. If they are too many to be found one by one, a group of queries is put aside
(`put_aside`). If the batch fails without any query, nobody is to blame, and the failure stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from dovetail.core.errors import TaskFailed, WorkerLost
from dovetail.engine.batch.put_aside import OutOfTries, StreamsOf, least_to_put_aside
from dovetail.engine.batch.settle_batch import Settled

Attempt = Callable[[Mapping[str, str]], Settled]
"""Runs the batch without these queries, which are quarantined in it for these reasons; raises `TaskFailed`."""

TRIES_FOR_SINGLE_ONES = 40
TRIES_FOR_A_GROUP = 20
STRIDE = 4
"""As long as a batch fails, so many times as many of the youngest are left out with the next try."""
_log = logging.getLogger("dovetail")


def run_without_culprits(
    attempt: Attempt, queries: Sequence[str], new: Sequence[str], failure: TaskFailed, streams_of: StreamsOf
) -> Settled:
    """The batch as it is without the queries that it failed with; `queries` ran before, `new` ones begin with it."""
    search = _Search(attempt, failure)
    try:
        if isinstance(failure, WorkerLost):
            # A process may be gone for any reason: that of one moment is nobody's fault.
            ran = search.run([], {})
            if ran is not None:
                return ran
        return search.whole([*queries, *new], len(queries))
    except OutOfTries:
        return search.without_a_group([*queries, *new], streams_of)


class _Search:
    def __init__(self, attempt: Attempt, failure: TaskFailed) -> None:
        self._attempt = attempt
        self._failure = failure
        self._tries_left = TRIES_FOR_SINGLE_ONES
        self._culprits: dict[str, str] = {}
        self._least_stopped: list[str] | None = None

    def run(self, left_out: Sequence[str], culprits: Mapping[str, str]) -> Settled | None:
        """The batch without these; None if it fails. Those left out are to blame only if the search ends with this."""
        if not self._tries_left:
            raise OutOfTries
        self._tries_left -= 1
        reasons = {query: self._reason() for query in left_out}
        return self._run({**reasons, **culprits})

    def _run(self, stopped: Mapping[str, str]) -> Settled | None:
        try:
            ran = self._attempt(stopped)
        except TaskFailed as failure:
            self._failure = failure
            return None
        if self._least_stopped is None or len(stopped) < len(self._least_stopped):
            self._least_stopped = list(stopped)
        return ran

    def without_a_group(self, queries: Sequence[str], streams_of: StreamsOf) -> Settled:
        """Found are `_culprits`; there are more, and no time to find them one by one."""
        suspects = [query for query in queries if query not in self._culprits]
        self._tries_left = TRIES_FOR_A_GROUP
        if self._least_stopped is None and self.run(suspects, self._culprits) is None:
            raise self._failure
        known = [query for query in self._least_stopped or () if query not in self._culprits]
        aside = least_to_put_aside(
            suspects, known, streams_of, lambda left_out: self.run(left_out, self._culprits) is not None
        )
        reason = (
            f"the batch failed with {len(aside)} queries, this one among them, and not without: {self._failure.what}"
        )
        _log.warning("%s: %s are quarantined", reason, ", ".join(aside))
        # What planning remembers is of the last try: that must be the one that is committed.
        ran = self._run({**dict.fromkeys(aside, reason), **self._culprits})
        if ran is None:
            raise self._failure
        return ran

    def whole(self, suspects: list[str], old: int) -> Settled:
        """`old` of the suspects, which come first, have run before: the others are the likelier culprits."""
        runs, looks_at = 0, old if old < len(suspects) else len(suspects) - 1
        while suspects:
            culprit, ran = self._next_culprit(suspects, runs, looks_at)
            self._culprits[suspects[culprit]] = self._reason()
            _log.warning("the batch fails with query %s, which is quarantined: %s", suspects[culprit], self._failure)
            suspects = [*suspects[:culprit], *suspects[culprit + 1 :]]
            if culprit < len(suspects) or ran is None:
                ran = self.run([], self._culprits)
            if ran is not None:
                return ran
            runs, looks_at = culprit, (culprit + len(suspects)) // 2
        raise self._failure

    def _next_culprit(self, suspects: list[str], runs: int, looks_at: int) -> tuple[int, Settled | None]:
        """The place of the first suspect with which the batch fails, and how it ran with those before it.

        It fails with all suspects; with the first `runs` of them it runs, if that is more than none.
        """
        fails, ran, step = len(suspects), None, len(suspects) if runs else STRIDE
        while fails - runs > 1:
            place = min(max(looks_at, runs + 1), fails - 1)
            found = self.run(suspects[place:], self._culprits)
            if found is None:
                fails = place
                looks_at, step = max((runs + fails) // 2, fails - step), STRIDE * step
            else:
                runs, ran = place, found
                looks_at, step = (runs + fails) // 2, len(suspects)
        if runs == 0:
            ran = self.run(suspects, self._culprits)
            if ran is None:
                raise self._failure
        return fails - 1, ran

    def _reason(self) -> str:
        return f"the batch failed with this query and not without it: {self._failure.what}"
