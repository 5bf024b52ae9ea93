"""What Ctrl-C does to a session's batches: nothing."""

from __future__ import annotations

import signal
import threading


def keep_interrupts_from_batches() -> None:
    """Let Ctrl-C be Python's KeyboardInterrupt again, if PySpark's handler stands.

    That one also cancels all jobs of the application, and the batch under way would fail with them, though it is
    only the main program that shall end what it does. A handler of the user's own stands.
    """
    is_of_pyspark = getattr(signal.getsignal(signal.SIGINT), "__module__", "") == "pyspark.core.context"
    if is_of_pyspark and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
