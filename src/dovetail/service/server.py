"""The app behind a socket, served by a thread of this process."""

from __future__ import annotations

import socket
import threading
from types import TracebackType

import uvicorn
from fastapi import FastAPI

from dovetail.core.errors import ServiceError
from dovetail.service.config.options import ServiceOptions
from dovetail.service.connections import Connections, guarded_protocol
from dovetail.service.service import Service

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 10
_WAITING_CONNECTIONS = 2_048


class Server:
    """Listens from `start` on; `stop` ends event streams, lets the other requests finish and closes."""

    def __init__(self, app: FastAPI, options: ServiceOptions) -> None:
        self._service: Service = app.state.service
        self._options = options
        self._socket: socket.socket | None = None
        self._service.connections = connections = Connections(options.limits)
        tls = options.tls
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                app,
                http=guarded_protocol(connections),
                ws="none",
                timeout_keep_alive=options.limits.idle_timeout_s,
                ssl_certfile=None if tls is None else str(tls.certificate),
                ssl_keyfile=None if tls is None else str(tls.key),
                access_log=False,
                log_config=None,
                server_header=False,
                # What a proxy says of the client is not needed, so it is not believed.
                proxy_headers=False,
                timeout_graceful_shutdown=_STOP_TIMEOUT_S,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="dovetail-http", daemon=True)

    @property
    def url(self) -> str:
        assert self._socket is not None, "start() comes first"
        host, port = self._socket.getsockname()[:2]
        scheme = "http" if self._options.tls is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def start(self) -> Server:
        self._socket = _bound(self._options)
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START_TIMEOUT_S / 0.01)):
            if self._uvicorn.started:
                return self
            if not self._thread.is_alive():
                break
            waited.wait(0.01)
        raise ServiceError("the HTTP server did not start", hint="see the log")

    def stop_accepting(self) -> None:
        """No more changes; reads and event streams go on until `stop`."""
        self._service.stop_accepting()

    def stop(self) -> None:
        self._service.stop_accepting()
        self._service.end_events()
        self._uvicorn.should_exit = True
        self._thread.join(_STOP_TIMEOUT_S + 5)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _serve(self) -> None:
        self._uvicorn.run(sockets=[self._socket] if self._socket else None)


def _bound(options: ServiceOptions) -> socket.socket:
    """Bound here and not by uvicorn, which would end the process if the address is taken."""
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(found[0], found[1], found[2])
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(found[4])
            listening.listen(_WAITING_CONNECTIONS)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise ServiceError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror or error}",
            hint="choose another port, or stop the program that has it",
        ) from None
    return listening
