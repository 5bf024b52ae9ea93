"""Names of output columns where each must differ, as in a file."""

from __future__ import annotations


def unique_names(names: list[str]) -> list[str]:
    """The names, case aside; a repeated one gets a number.

    >>> unique_names(["id", "ts", "id"])
    ['id', 'ts', 'id_2']
    """
    taken: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        unique.append(candidate)
    return unique
