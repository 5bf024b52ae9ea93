"""A YAML file read key by key: every value knows its line, and every mistake is noted, not only the first.

`${NAME}` in a value stands for an environment variable; `$${NAME}` for the text `${NAME}` itself.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from dovetail.core.errors import ConfigError, DovetailError

_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class Problem:
    line: int
    key: str
    what: str
    hint: str | None

    def __str__(self) -> str:
        place = f"line {self.line}, {self.key}" if self.key else f"line {self.line}"
        return f"{place}: {self.what}" + (f"\n    instead: {self.hint}" if self.hint else "")


@dataclass
class Problems:
    """What is wrong with one file, in the order of its lines."""

    found: list[Problem] = field(default_factory=list)

    def add(self, line: int, key: str, what: str, hint: str | None = None) -> None:
        self.found.append(Problem(line, key, what, hint))

    def raise_if_any(self, file: str) -> None:
        if self.found:
            lines = [f"  {problem}" for problem in sorted(self.found, key=lambda problem: problem.line)]
            count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
            raise ConfigError("\n".join([f"{file} cannot be used: {count}", *lines]))


@dataclass(frozen=True)
class Scalar:
    """A single value: its text, and what YAML takes it for."""

    line: int
    text: str
    value: str | int | float | bool | None


class Section:
    """One mapping of the file. What is read of it counts as known; `end` notes the rest."""

    def __init__(self, node: yaml.MappingNode, key: str, problems: Problems, variables: Mapping[str, str]) -> None:
        self.line = _line(node)
        self.key = key
        self.problems = problems
        self._variables = variables
        self._known: list[str] = []
        self._nodes: dict[str, tuple[int, yaml.Node]] = {}
        for key_node, value in node.value:
            name = str(key_node.value)
            if name in self._nodes:
                self.note(f"given twice, first in line {self._nodes[name][0]}", "keep one", name, _line(key_node))
            else:
                self._nodes[name] = _line(key_node), value

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def names(self) -> list[str]:
        return list(self._nodes)

    def line_of(self, name: str) -> int:
        return self._nodes[name][0] if name in self._nodes else self.line

    def note(self, what: str, hint: str | None, name: str = "", line: int | None = None) -> None:
        key = ".".join(part for part in (self.key, name) if part)
        self.problems.add(line if line is not None else self.line_of(name), key, what, hint)

    def note_error(self, error: DovetailError | ValueError, name: str = "") -> None:
        """An error of what was made of the section, at the key that it speaks of."""
        what, hint = (error.what, error.hint) if isinstance(error, DovetailError) else (str(error), None)
        where = f" ({error.where})" if isinstance(error, DovetailError) and error.where else ""
        self.note(what + where, hint, name or self.speaks_of(what))

    def speaks_of(self, what: str) -> str:
        """The key that the text names first; empty if it names none."""
        places = {known: re.search(rf"\b{re.escape(known)}\b", what) for known in self._nodes}
        found = [(place.start(), known) for known, place in places.items() if place is not None]
        return min(found)[1] if found else ""

    def section(self, name: str) -> Section | None:
        node = self._take(name)
        if node is None:
            return None
        if not isinstance(node, yaml.MappingNode):
            self.note("not a list of keys and values", f"write lines of the form  key: value  below {name}", name)
            return None
        inner = ".".join(part for part in (self.key, name) if part)
        return Section(node, inner, self.problems, self._variables)

    def sections(self) -> Iterator[tuple[str, Section]]:
        """Every key as a section of its own."""
        for name in self.names():
            inner = self.section(name)
            if inner is not None:
                yield name, inner

    def scalar(self, name: str) -> Scalar | None:
        """None if it is not there, or if it is no single value, which is noted."""
        node = self._take(name)
        if node is None:
            return None
        if not isinstance(node, yaml.ScalarNode):
            self.note("not a single value", "write one value behind the colon", name)
            return None
        text = _VARIABLE.sub(lambda match: self._variable(match, name), node.value)
        value = _plain_value(text) if node.style is None else text
        return Scalar(self.line_of(name), text, value)

    def text(self, name: str, *, is_required: bool = False, hint: str | None = None) -> str | None:
        if is_required and name not in self:
            self.note("is missing", hint, name)
        found = self.scalar(name)
        if found is None:
            return None
        if found.value is None or not found.text.strip():
            self.note("has no value", hint or "write one behind the colon, or leave the key out", name)
            return None
        return found.text

    def option(self, name: str) -> str:
        """The value as Spark's options write it."""
        found = self.scalar(name)
        if found is None or found.value is None:
            if found is not None:
                self.note("has no value", "write one behind the colon, or leave the key out", name)
            return ""
        return str(found.value).lower() if isinstance(found.value, bool) else found.text

    def whole(self, name: str, default: Any, lower: int, upper: int | None = None) -> Any:
        found = self.scalar(name)
        if found is None:
            return default
        value = found.value
        if type(value) is not int or value < lower or (upper is not None and value > upper):
            limits = f"from {lower} on" if upper is None else f"from {lower} to {upper}"
            self.note(f"is {found.text!r}", f"use a whole number {limits}", name)
            return default
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        found = self.scalar(name)
        if found is None:
            return default
        if not isinstance(found.value, bool):
            self.note(f"is {found.text!r}", "use true or false", name)
            return default
        return found.value

    def made(self, make: Callable[[], Any], name: str = "") -> Any:
        """What `make` gives, or None and a note of why it does not."""
        try:
            return make()
        except (DovetailError, ValueError) as error:
            self.note_error(error, name)
            return None

    def end(self, others: Iterable[str] = ()) -> None:
        """Note every key that nobody asked for, with the one that may have been meant."""
        known = {*self._known, *others}
        for name in self._nodes:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"keys here are: {', '.join(sorted(known))}"
                self.note("unknown key", hint, name)

    def _take(self, name: str) -> yaml.Node | None:
        self._known.append(name)
        return self._nodes[name][1] if name in self._nodes else None

    def _variable(self, match: re.Match[str], name: str) -> str:
        escape, variable = match.groups()
        if escape:
            return f"${{{variable}}}"
        if variable not in self._variables:
            hint = f"set it, or write $${{{variable}}} for the text itself"
            self.note(f"environment variable {variable} is not set", hint, name)
        return self._variables.get(variable, "")


def read_section(text: str, problems: Problems, variables: Mapping[str, str]) -> Section | None:
    """The whole file; None if it is no mapping, which is noted."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "cannot be read"
        problems.add(mark.line + 1 if mark else 1, "", f"no YAML: {what}", "see indentation, colons and quotes there")
        return None
    except yaml.YAMLError as error:
        problems.add(1, "", f"no YAML: {error}")
        return None
    if not isinstance(node, yaml.MappingNode):
        problems.add(1, "", "no keys and values", "begin with  checkpoint_dir: ./checkpoint")
        return None
    return Section(node, "", problems, variables)


def _plain_value(text: str) -> str | int | float | bool | None:
    """What a text without quotes stands for; a variable may have given it."""
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text
    return value if value is None or isinstance(value, bool | int | float) else text


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
