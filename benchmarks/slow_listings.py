"""An S3 server whose listings take as long as those of a real store.

    python benchmarks/slow_listings.py PORT FOLDER SECONDS

The server is the tests' S3 server (tests/stores/s3_server.py). It waits SECONDS before it returns a
page of a listing. Several pages can be requested in parallel. For each page, moto needs time
proportional to the number of objects. Therefore, this module caches the listing of FOLDER (such as
`t`), and serves the pages from the cache until an object is written or deleted.
"""

from __future__ import annotations

import re
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote

sys.path.append(str(Path(__file__).resolve().parent.parent))

from tests.stores import s3_server

PAGE = 1000

App = Callable[..., Iterable[bytes]]


class SlowListings(s3_server.Failing):
    """A WSGI application that delays listings, and serves those of one folder from a cache."""

    def __init__(self, app: App, folder: str, seconds: float) -> None:
        super().__init__(app)
        self.prefix, self.seconds = f"{folder}/", seconds
        self.entries: list[tuple[str, str]] | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
        if query.get("list-type") != "2":
            if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
                self.entries = None
            return super().__call__(environ, start_response)
        time.sleep(self.seconds)
        if (query.get("prefix"), query.get("delimiter")) != (self.prefix, "/"):
            return super().__call__(environ, start_response)
        with self.lock:
            self.requests.append(f"GET {environ['PATH_INFO']}?{environ['QUERY_STRING']}")
            if self.entries is None:
                self.entries = self.listed(environ)
            page = self.page(self.entries, query)
        start_response("200 OK", [("Content-Type", "application/xml")])
        return [page.encode()]

    def page(self, entries: list[tuple[str, str]], query: dict[str, str]) -> str:
        """One page of the folder's listing as XML."""
        after = query.get("continuation-token") or query.get("start-after", "")
        first = bisect_right(entries, (after, "\U0010ffff"))
        most = min(PAGE, int(query.get("max-keys", PAGE)))
        found = entries[first : first + most]
        more = first + most < len(entries)
        token = f"<NextContinuationToken>{quote(found[-1][0])}</NextContinuationToken>"
        return (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{s3_server.BUCKET}</Name><Prefix>{self.prefix}</Prefix>"
            f"<Delimiter>/</Delimiter><MaxKeys>{most}</MaxKeys><KeyCount>{len(found)}</KeyCount>"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{token if more else ''}"
            f"{''.join(xml for _, xml in found)}</ListBucketResult>"
        )

    def listed(self, environ: dict[str, Any]) -> list[tuple[str, str]]:
        """The keys and the XML of all entries in the folder, as moto lists them."""
        found: list[tuple[str, str]] = []
        token = ""
        while True:
            asked = f"list-type=2&prefix={quote(self.prefix, safe='')}&delimiter=%2F"
            asked += f"&continuation-token={quote(token, safe='')}" if token else ""
            body = b"".join(self.app({**environ, "QUERY_STRING": asked}, lambda *_: None)).decode()
            for kind, key in (("Contents", "Key"), ("CommonPrefixes", "Prefix")):
                for xml in re.findall(f"<{kind}>.*?</{kind}>", body, re.DOTALL):
                    [name] = re.findall(f"<{key}>(.*?)</{key}>", xml)
                    found.append((unquote(name), xml))
            tokens = re.findall("<NextContinuationToken>(.*?)</", body)
            if not tokens:
                return sorted(found)
            token = tokens[0]


def main(port: int, folder: str, seconds: float) -> None:
    """Runs the server until the process is terminated."""
    s3_server.serve(port, lambda app: SlowListings(app, folder, seconds))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
