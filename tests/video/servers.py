"""Real servers on the loopback: HTTP with and without ranges, and plain TCP; each can break off or fall silent."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar


@dataclass
class HttpFile:
    """What the HTTP server says about its one file, and what it was asked."""

    data: bytes
    has_ranges: bool = True
    has_length: bool = True
    cut_after: int | None = None
    """Close the connection after so many bytes of each answer."""
    hang_after: int | None = None
    """Say no more after so many bytes of each answer."""
    status: int = 200
    content_type: str = "application/octet-stream"
    released: threading.Event = field(default_factory=threading.Event)
    num_requests: int = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    file: ClassVar[HttpFile]

    def do_GET(self) -> None:
        file = self.file
        file.num_requests += 1
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", "")) if file.has_ranges else None
        start = int(asked[1]) if asked else 0
        self.close_connection = True
        if file.status != 200:
            self.send_error(file.status)
            return
        self.send_response(206 if asked else 200)
        self.send_header("Content-Type", file.content_type)
        self.send_header("Connection", "close")
        if file.has_ranges:
            self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(file.data) - 1}/{len(file.data)}")
        if file.has_length:
            self.send_header("Content-Length", str(len(file.data) - start))
        self.end_headers()
        limit = min(len(file.data), start + min(file.cut_after or 10**9, file.hang_after or 10**9))
        with contextlib.suppress(OSError):
            self.wfile.write(file.data[start:limit])
            self.wfile.flush()
            if file.hang_after is not None and limit < len(file.data):
                file.released.wait(60)

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


@contextlib.contextmanager
def http_server(file: HttpFile) -> Iterator[str]:
    """Address of a server that has just this file."""
    handler = type("Handler", (_Handler,), {"file": file})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/video"
    finally:
        file.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


Talk = Callable[[socket.socket], None]


@contextlib.contextmanager
def tcp_server(*talks: Talk) -> Iterator[str]:
    """Address of a server that treats each connection in turn by the next talk, and refuses any further one."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for number, talk in enumerate(talks):
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                if number == len(talks) - 1:
                    listener.close()
                with connection:
                    talk(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def send(data: bytes) -> Talk:
    """Send everything at once and close."""
    return lambda connection: connection.sendall(data)


def send_paced(data: bytes, seconds: float, *, released: threading.Event | None = None) -> Talk:
    """Send evenly over some seconds, or at once where released."""

    def talk(connection: socket.socket) -> None:
        step = 188 * max(1, len(data) // 188 // 100)
        pieces = [data[place : place + step] for place in range(0, len(data), step)]
        for piece in pieces:
            connection.sendall(piece)
            if released is None:
                time.sleep(seconds / len(pieces))
            else:
                released.wait(seconds / len(pieces))

    return talk


def send_and_hang(data: bytes, released: threading.Event) -> Talk:
    """Send everything and keep the connection open in silence."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(data)
        released.wait(60)

    return talk
