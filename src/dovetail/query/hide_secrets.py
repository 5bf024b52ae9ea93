"""Options of sources and sinks as people and logs may see them."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "***"
_SECRET = re.compile(r"password|passwd|secret|token|credential|jaas|access.?key|account.?key", re.IGNORECASE)


def hide_secrets(options: Mapping[str, str]) -> dict[str, str]:
    """What looks like a secret by its key is not shown.

    >>> hide_secrets({"topic": "views", "kafka.ssl.key.password": "abc"})
    {'topic': 'views', 'kafka.ssl.key.password': '***'}
    """
    return {key: HIDDEN if _SECRET.search(key) else value for key, value in options.items()}
