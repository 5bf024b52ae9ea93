"""The net below the front end: no text fails with an error that is not Dovetail's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.core.errors import MAX_TOLD, DovetailError, SqlSyntaxError
from dovetail.core.known_secrets import without_secrets
from dovetail.frontend.parse.source_text import SourceText


@contextmanager
def unforeseen_as_refusal(source: SourceText) -> Iterator[None]:
    """What sqlglot or a reader of ours fails at becomes a refusal of the text, with what failed as its cause."""
    try:
        yield
    except (DovetailError, MemoryError):
        raise
    except Exception as error:
        # Secrets go first: half of one would not be known for it.
        told = without_secrets(str(error)).strip().split("\n")[0][:MAX_TOLD]
        raise SqlSyntaxError(
            f"the text cannot be read, by a defect of Dovetail: {type(error).__name__}: {told}",
            where=source.where(0),
            hint="write it in another way; and please report this, with the text",
        ) from error
