"""The service's configuration file: YAML to a checked record (docs/configuration.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dovetail.core.errors import ConfigError, SessionError
from dovetail.engine.control.check_sink import check_sink
from dovetail.engine.control.query_options import query_options
from dovetail.engine.control.registry import check_name
from dovetail.engine.options.engine_options import MOVED, USER_OPTIONS, user_options
from dovetail.query.durations import parse_duration
from dovetail.query.formats import FILE_FORMATS
from dovetail.query.hide_secrets import check_no_secrets
from dovetail.query.stream_spec import OWN_KEYS, VALUE_FORMAT, StreamSpec, stream_spec
from dovetail.query.types import SqlType, parse_column_type
from dovetail.service.access.first_token import given_token
from dovetail.service.config.options import DEFAULT_PORT, Limits, ServiceOptions, Tls, is_loopback
from dovetail.service.config.places import FILE_HINT, FOLDER_HINT, file_trouble, folder_trouble
from dovetail.service.config.yaml_section import Problems, Section, read_section

AVAILABLE_NOW = "available_now"
LOOPBACK = "127.0.0.1"
# Statistics are a Python object.
SESSION_KEYS = tuple(name for name in USER_OPTIONS if name != "statistics")


@dataclass(frozen=True)
class QueryConfig:
    """A query that the service has. `line` is where its text begins in the file."""

    name: str
    sql: str
    options: Mapping[str, Any] = field(default_factory=dict)
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Listen:
    """`allowed_hosts` are further names under which clients reach the service.

    With `tls_certificate` and `tls_key` they come by HTTPS. `open_docs`: /docs and the schema need no token.
    """

    host: str = LOOPBACK
    port: int = DEFAULT_PORT
    allowed_hosts: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    open_docs: bool = False

    @property
    def tls(self) -> Tls | None:
        return None if self.tls_certificate is None or self.tls_key is None else Tls(self.tls_certificate, self.tls_key)


@dataclass(frozen=True)
class Auth:
    """`token_file` holds the first token; without it one is made and printed once."""

    enabled: bool = True
    token_file: Path | None = None


@dataclass(frozen=True)
class ServiceConfig:
    """Everything that `dovetail serve` is told, and in which file. Paths are absolute."""

    checkpoint_dir: Path
    trigger: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=dict)
    streams: tuple[StreamSpec, ...] = ()
    queries: tuple[QueryConfig, ...] = ()
    listen: Listen = field(default_factory=Listen)
    auth: Auth = field(default_factory=Auth)
    limits: Limits = field(default_factory=Limits)
    audit_log: Path | None = None
    open_sinks: tuple[str, ...] = ()
    line_by_stream: Mapping[str, int] = field(default_factory=dict, compare=False)
    file: Path | None = field(default=None, compare=False)

    @property
    def stream_by_name(self) -> dict[str, StreamSpec]:
        return {spec.name: spec for spec in self.streams}

    @property
    def service_options(self) -> ServiceOptions:
        """What belongs to the service lies beside the checkpoint, not in it: tokens are there before the session."""
        return ServiceOptions(
            data_dir=self.checkpoint_dir.with_name(f"{self.checkpoint_dir.name}.service"),
            host=self.listen.host,
            port=self.listen.port,
            auth=self.auth.enabled,
            allowed_hosts=self.listen.allowed_hosts,
            open_sinks=self.open_sinks,
            limits=self.limits,
            audit_log=self.audit_log,
            tls=self.listen.tls,
            open_docs=self.listen.open_docs,
        )


def load_config(
    file: str | Path, variables: Mapping[str, str] | None = None, *, tries_places: bool = False
) -> ServiceConfig:
    """The configuration in `file`, or an error that lists all that is wrong with it; `variables` as in `os.environ`.

    `tries_places`: also what is wrong with the folders and files that it names, as far as a start needs them.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{file} cannot be read: {getattr(error, 'strerror', None) or error}",
            hint="give the path of a YAML file; examples/serve.yaml is one to begin with",
        ) from None
    problems = Problems()
    whole = read_section(text, problems, os.environ if variables is None else variables)
    config = None if whole is None else _read(whole, path.absolute().parent, tries_places=tries_places)
    problems.raise_if_any(str(file))
    assert config is not None
    return replace(config, file=path.absolute())


def _read(whole: Section, folder: Path, *, tries_places: bool) -> ServiceConfig:
    checkpoint_dir = whole.text("checkpoint_dir", is_required=True, hint="add  checkpoint_dir: ./checkpoint")
    streams, lines = _streams(whole, folder)
    auth = _auth(whole, folder, tries_token=tries_places)
    audit_log = whole.text("audit_log")
    config = ServiceConfig(
        checkpoint_dir=folder / (checkpoint_dir or ""),
        trigger=_trigger(whole),
        spark=_spark(whole),
        session=_session(whole),
        streams=streams,
        queries=_queries(whole),
        listen=_listen(whole, auth, folder),
        auth=auth,
        limits=_limits(whole),
        audit_log=None if audit_log is None else folder / audit_log,
        open_sinks=_words(whole, "open_sinks"),
        line_by_stream=lines,
    )
    whole.end()
    if not config.checkpoint_dir.name:
        whole.note("is the root of the filesystem", FOLDER_HINT, "checkpoint_dir")
    elif tries_places:
        _try_places(whole, config)
    return config


def _try_places(whole: Section, config: ServiceConfig) -> None:
    options = config.service_options
    found = {
        "checkpoint_dir": folder_trouble(config.checkpoint_dir) or folder_trouble(options.data_dir),
        "audit_log": None if config.audit_log is None else file_trouble(config.audit_log),
    }
    hints = {"checkpoint_dir": FOLDER_HINT, "audit_log": FILE_HINT}
    for name, trouble in found.items():
        if name in whole and trouble is not None:
            whole.note(trouble, hints[name], name)


def _trigger(whole: Section) -> str | None:
    trigger = whole.text("trigger")
    if trigger is not None and trigger != AVAILABLE_NOW:
        try:
            parse_duration(trigger)
        except ValueError as error:
            whole.note(str(error), f"use an interval such as 1 second, or {AVAILABLE_NOW}", "trigger")
    return trigger


def _spark(whole: Section) -> dict[str, str]:
    settings = whole.section("spark")
    if settings is None:
        return {}
    for name in settings.names():
        if not name.startswith("spark."):
            settings.note("no setting of Spark", f"write spark.{name}", name)
    return {name: settings.option(name) for name in settings.names()}


def _session(whole: Section) -> dict[str, Any]:
    section = whole.section("session")
    if section is None:
        return {}
    found = {name: section.scalar(name) for name in section.names() if name in SESSION_KEYS}
    moved = [name for name in section.names() if name in MOVED]
    for name in moved:
        section.note("no option of a session", MOVED[name], name)
    section.end((*SESSION_KEYS, *moved))
    options = {name: scalar.value for name, scalar in found.items() if scalar is not None}
    _check_session(section, options)
    return options


def _check_session(section: Section, options: Mapping[str, Any]) -> None:
    """Each wrong value is noted, and the others are looked at without it."""
    left = dict(options)
    while True:
        try:
            user_options(left, "UTC")
        except SessionError as error:
            told = section.speaks_of(error.what)
            # What one option asks of another may be due to the one that is left out.
            if len(left) == len(options) or ", and " not in error.what:
                section.note_error(error, told)
            if told in left:
                del left[told]
                continue
        return


def _streams(whole: Section, folder: Path) -> tuple[tuple[StreamSpec, ...], dict[str, int]]:
    """With the line of each."""
    section = whole.section("streams")
    specs = [] if section is None else [_stream(name, each, folder) for name, each in section.sections()]
    by_name: dict[str, str] = {}
    for spec in specs:
        if spec is not None and by_name.setdefault(spec.name.lower(), spec.name) != spec.name and section is not None:
            section.note("differs from another stream only in case", "give it another name", spec.name)
    lines = {} if section is None else {name: section.line_of(name) for name in section.names()}
    return tuple(spec for spec in specs if spec is not None), lines


def _stream(name: str, section: Section, folder: Path) -> StreamSpec | None:
    given = {key: text for key in (*OWN_KEYS, VALUE_FORMAT) if (text := section.text(key)) is not None}
    columns = _columns(section)
    options = section.section("options")
    if options is not None:
        given |= {key: options.option(key) for key in options.names()}
    section.end()
    path = given.get("path")
    if path is not None and given.get("format", "").lower() in FILE_FORMATS and ":/" not in path:
        given["path"] = str(folder / path)
    if options is not None:
        options.made(lambda: check_no_secrets(f"stream {name!r}", {key: given[key] for key in options.names()}))
    return None if columns is None else section.made(lambda: stream_spec(name, columns, given))


def _columns(section: Section) -> tuple[tuple[str, SqlType], ...] | None:
    """None if one of them is wrong."""
    columns = section.section("columns")
    if columns is None:
        return None if "columns" in section else ()
    types = [(name, _column_type(columns, name)) for name in columns.names()]
    return None if any(found is None for _, found in types) else tuple((name, found) for name, found in types if found)


def _column_type(columns: Section, name: str) -> SqlType | None:
    text = columns.text(name, hint="write its type, e.g. bigint")
    found: SqlType | None = None if text is None else columns.made(lambda: parse_column_type(text), name)
    return found


def _queries(whole: Section) -> tuple[QueryConfig, ...]:
    section = whole.section("queries")
    if section is None:
        return ()
    found = [_query(name, each) for name, each in section.sections()]
    return tuple(query for query in found if query is not None)


def _query(name: str, section: Section) -> QueryConfig | None:
    """Its text is not compiled here: what does not compile is that query's matter, and not the file's."""
    section.made(lambda: check_name(name))
    sql = section.text("sql", is_required=True, hint="write the SELECT that it answers")
    given = section.section("options")
    options: dict[str, Any] = {}
    if given is not None:
        scalars = {key: given.scalar(key) for key in given.names()}
        options = {key: scalar.value for key, scalar in scalars.items() if scalar is not None}
        given.made(lambda: _check_options(name, options))
    section.end()
    return None if sql is None else QueryConfig(name, sql, options, section.line_of("sql"))


def _check_options(name: str, given: Mapping[str, Any]) -> None:
    sink = query_options(given).sink
    if sink is not None:
        check_sink(name, sink)


def _listen(whole: Section, auth: Auth, folder: Path) -> Listen:
    section = whole.section("listen")
    if section is None:
        return Listen()
    host = section.text("host") or LOOPBACK
    certificate, key = section.text("tls_certificate"), section.text("tls_key")
    listen = Listen(
        host,
        section.whole("port", DEFAULT_PORT, 0, 65_535),
        _words(section, "allowed_hosts"),
        None if certificate is None else folder / certificate,
        None if key is None else folder / key,
        section.flag("open_docs", default=False),
    )
    if (certificate is None) != (key is None):
        section.note("one of tls_certificate and tls_key is missing", "give both, or none")
    section.made(lambda: listen.tls)
    if not auth.enabled and not is_loopback(host):
        section.note(f"{host} is reachable from outside, and auth is off", f"use {LOOPBACK}, or turn auth on", "host")
    section.end()
    return listen


def _auth(whole: Section, folder: Path, *, tries_token: bool) -> Auth:
    section = whole.section("auth")
    if section is None:
        return Auth()
    token_file = section.text("token_file")
    auth = Auth(section.flag("enabled", default=True), None if token_file is None else folder / token_file)
    if tries_token and auth.enabled:
        section.made(lambda: given_token(auth.token_file, {}), "token_file")
    section.end()
    return auth


def _limits(whole: Section) -> Limits:
    section = whole.section("limits")
    if section is None:
        return Limits()
    default = Limits()
    limits = Limits(**{name: section.whole(name, getattr(default, name), 1) for name in _names(Limits)})
    section.end()
    return limits


def _words(section: Section, name: str) -> tuple[str, ...]:
    return tuple((section.text(name) or "").split())


def _names(record: type[Any]) -> list[str]:
    return [entry.name for entry in fields(record)]
