"""An S3 server for tests: moto's, which fails the requests that a test asks it to fail.

    python tests/stores/s3_server.py PORT

It takes one request at a time, as whoever asks an S3 for one object sees it: moto's check whether an
object exists and the put that depends on it are two steps.
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

#: To this path a test sends which request is to fail next, and how.
FAIL = "/_fail"

#: The request is carried out, and its answer gets lost.
LOSE = "lose"

#: The request is refused, as S3 refuses a conditional put while another of the same object goes on.
CONFLICT = "conflict"


def fail(endpoint: str, how: str, request: str) -> None:
    """The next request that the pattern finds, such as `PUT .*prepare`, fails so."""
    urlopen(Request(endpoint + FAIL, f"{how} {request}".encode(), method="POST")).close()


class Failing:
    """A WSGI application that serves another one."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self.app = app
        self.lock = Lock()
        self.faults: list[tuple[str, str]] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        with self.lock:
            if environ["PATH_INFO"] == FAIL:
                told = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()
                how, _, pattern = told.partition(" ")
                self.faults.append((how, pattern))
                start_response("200 OK", [])
                return []
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


def main(port: int) -> None:
    from moto.moto_server.werkzeug_app import create_backend_app  # only the server needs moto
    from werkzeug.serving import run_simple

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = create_backend_app("s3")
    moto.test_client().put(f"/{BUCKET}")
    run_simple("127.0.0.1", port, Failing(moto.wsgi_app), threaded=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
