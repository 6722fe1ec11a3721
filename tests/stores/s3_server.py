"""An S3 server for tests. It is moto's server, extended so that tests can make a request fail.

    python tests/stores/s3_server.py PORT

The server handles one request at a time. If it handled requests concurrently, conditional requests
would not be atomic, because moto first checks whether an object exists and then writes it. The
server also logs the requests, because some tests count them.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable
from socket import SHUT_RDWR
from threading import Lock
from typing import Any
from urllib.request import Request, urlopen

BUCKET = "tests"

#: A POST to this path determines which request fails next, and how it fails.
FAIL = "/_fail"

#: A GET request for this path returns the requests since the previous such request, one per line.
#: Each line includes the query string.
REQUESTS = "/_requests"

#: The request is executed, but its response is lost.
LOSE = "lose"

#: The request is rejected with the error that S3 returns for a conditional put while another put of
#: the same object is in progress.
CONFLICT = "conflict"


def fail(endpoint: str, how: str, request: str) -> None:
    """Makes the next request that matches the pattern `request` (such as `PUT .*prepare`) fail.
    `how` is LOSE or CONFLICT."""
    urlopen(Request(endpoint + FAIL, f"{how} {request}".encode(), method="POST")).close()


def requests(endpoint: str) -> list[str]:
    """Returns the requests since the last call, such as
    `GET /tests/t?list-type=2&start-after=a`."""
    with urlopen(endpoint + REQUESTS) as answer:
        return answer.read().decode().splitlines()


class Failing:
    """A WSGI application that wraps another application. It logs requests and can make a request
    fail."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self.app = app
        self.lock = Lock()
        self.faults: list[tuple[str, str]] = []
        self.requests: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        with self.lock:
            if environ["PATH_INFO"] == FAIL:
                told = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()
                how, _, pattern = told.partition(" ")
                self.faults.append((how, pattern))
                start_response("200 OK", [])
                return []
            if environ["PATH_INFO"] == REQUESTS:
                said, self.requests = self.requests, []
                start_response("200 OK", [])
                return ["\n".join(said).encode()]
            self.requests.append(f"{request}?{environ['QUERY_STRING']}")
            fault = next((f for f in self.faults if re.search(f[1], request)), None)
            if fault:
                self.faults.remove(fault)
            if fault and fault[0] == CONFLICT:
                start_response("409 Conflict", [("Content-Type", "application/xml")])
                return [b"<Error><Code>ConditionalRequestConflict</Code></Error>"]
            answer = list(self.app(environ, start_response))
            if fault:
                environ["werkzeug.socket"].shutdown(SHUT_RDWR)
                raise ConnectionAbortedError(f"the answer to {request} is lost")
            return answer


def serve(port: int, wrap: Callable[[Callable[..., Iterable[bytes]]], Failing] = Failing) -> None:
    """Runs the server until the process is terminated. `wrap` is applied to moto's application."""
    from moto.moto_server.werkzeug_app import create_backend_app  # only the server needs moto
    from werkzeug.serving import run_simple

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = create_backend_app("s3")
    moto.test_client().put(f"/{BUCKET}")
    run_simple("127.0.0.1", port, wrap(moto.wsgi_app), threaded=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
