"""A batch whose tasks failed without saying whose fault it is runs again with fewer queries, until that is known.

    q1 q2 q3 q4 | q5 new        fails
    q1 q2 q3 q4                 runs: it is q5, and this is the batch without it

    q1 q2 q3 q4                 fails, and nobody is new
    q1 q2                       runs
    q1 q2 q3                    fails: it is q3
    q1 q2    q4                 runs: this is the batch

Nothing is committed before a batch is settled, so each try begins at the state that the last batch left. Of n queries
one is found in about log n tries. If the batch fails without any query, nobody is to blame, and the failure stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from dovetail.core.errors import TaskFailed, WorkerLost
from dovetail.engine.batch.settle_batch import Settled

Attempt = Callable[[Mapping[str, str]], Settled]
"""Runs the batch without these queries, which are quarantined in it for these reasons; raises `TaskFailed`."""

MAX_TRIES = 40
_log = logging.getLogger("dovetail")


def run_without_culprits(attempt: Attempt, queries: Sequence[str], new: Sequence[str], failure: TaskFailed) -> Settled:
    """The batch as it is without the queries that it failed with; `queries` ran before, `new` ones begin with it."""
    search = _Search(attempt, failure)
    if isinstance(failure, WorkerLost):
        # A process may be gone for any reason: that of one moment is nobody's fault.
        ran = search.run([], {})
        if ran is not None:
            return ran
    return search.whole([*queries, *new], len(queries))


class _Search:
    def __init__(self, attempt: Attempt, failure: TaskFailed) -> None:
        self._attempt = attempt
        self._failure = failure
        self._tries = 0
        self._culprits: dict[str, str] = {}

    def run(self, left_out: Sequence[str], culprits: Mapping[str, str]) -> Settled | None:
        """The batch without these; None if it fails. Those left out are to blame only if the search ends with this."""
        if self._tries == MAX_TRIES:
            raise TaskFailed(
                f"the batch failed, and {MAX_TRIES} tries with fewer queries did not tell why: {self._failure.what}",
                hint=self._failure.hint,
            ) from self._failure
        self._tries += 1
        reasons = {query: self._reason() for query in left_out}
        try:
            return self._attempt({**reasons, **culprits})
        except TaskFailed as failure:
            self._failure = failure
            return None

    def whole(self, suspects: list[str], old: int) -> Settled:
        """`old` of the suspects, which come first, have run before: the others are the likelier culprits."""
        runs, looks_at = 0, old if old < len(suspects) else len(suspects) // 2
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
        fails, ran = len(suspects), None
        while fails - runs > 1:
            place = min(max(looks_at, runs + 1), fails - 1)
            found = self.run(suspects[place:], self._culprits)
            if found is None:
                fails = place
            else:
                runs, ran = place, found
            looks_at = (runs + fails) // 2
        if runs == 0:
            ran = self.run(suspects, self._culprits)
            if ran is None:
                raise self._failure
        return fails - 1, ran

    def _reason(self) -> str:
        return f"the batch failed with this query and not without it: {self._failure.what}"
