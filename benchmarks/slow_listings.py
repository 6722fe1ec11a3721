"""An S3 server with many objects, whose listings take as long as those of a real store.

    python benchmarks/slow_listings.py PORT FOLDER FILES SECONDS

The server is the tests' S3 server (tests/stores/s3_server.py) with two additions. It waits SECONDS
before it returns a page of a listing; several pages can be requested in parallel. FOLDER (such as
`t`) contains FILES Parquet files, which the server keeps in memory and never changes. moto would
need time proportional to the number of objects for each page, and a lock for each request.
"""

from __future__ import annotations

import io
import re
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote

sys.path.append(str(Path(__file__).resolve().parent.parent))

from tests.stores import s3_server

PAGE = 1000

#: Number of rows in a file.
ROWS = 10

#: When all of the files were last changed, in seconds since the epoch.
CHANGED = 1_700_000_000

App = Callable[..., Iterable[bytes]]


def parquet(number: int) -> bytes:
    """The content of a file. The ids in successive files are consecutive. The columns have the
    field ids without which Iceberg would record no minima and maxima."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
    fields = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})
        for number, name in enumerate(("id", "v"), 1)
    ]
    content = io.BytesIO()
    pq.write_table(pa.table([ids, ids], schema=pa.schema(fields)), content)
    return content.getvalue()


class ManyObjects(s3_server.Failing):
    """A WSGI application that delays listings, and serves the files of one folder itself."""

    def __init__(self, app: App, folder: str, files: int, seconds: float) -> None:
        super().__init__(app)
        self.prefix, self.seconds = f"{folder}/", seconds
        self.files = {f"{self.prefix}part-{i:06}.parquet": parquet(i) for i in range(files)}
        self.entries: dict[str, list[tuple[str, str]]] = {}

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
        method, key = environ["REQUEST_METHOD"], environ["PATH_INFO"].split("/", 2)[-1]
        if method in ("GET", "HEAD") and key in self.files:
            self.log(environ)
            return self.file(self.files[key], key, environ, start_response)
        if query.get("list-type") != "2":
            if method not in ("GET", "HEAD"):
                self.entries = {}
            return super().__call__(environ, start_response)
        time.sleep(self.seconds)
        if query.get("prefix") != self.prefix:
            return super().__call__(environ, start_response)
        self.log(environ)
        delimiter = query.get("delimiter", "")
        with self.lock:
            if delimiter not in self.entries:
                self.entries[delimiter] = sorted(self.own() + self.others(environ, delimiter))
            page = self.page(self.entries[delimiter], query)
        start_response("200 OK", [("Content-Type", "application/xml")])
        return [page.encode()]

    def log(self, environ: dict[str, Any]) -> None:
        with self.lock:
            method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
            self.requests.append(f"{method} {path}?{environ['QUERY_STRING']}")

    def file(
        self, content: bytes, key: str, environ: dict[str, Any], start_response: Any
    ) -> list[bytes]:
        """The response to a request for one of the files or for a range of its bytes."""
        headers = [
            ("Content-Type", "application/octet-stream"),
            ("Last-Modified", formatdate(CHANGED, usegmt=True)),
            ("ETag", f'"{key}"'),
            ("Accept-Ranges", "bytes"),
        ]
        status, size = "200 OK", len(content)
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", environ.get("HTTP_RANGE", ""))
        if asked:
            first, last = (int(text) if text else None for text in asked.groups())
            if first is None:
                first, last = max(0, size - (last or 0)), None
            last = size - 1 if last is None else min(last, size - 1)
            content, status = content[first : last + 1], "206 Partial Content"
            headers.append(("Content-Range", f"bytes {first}-{last}/{size}"))
        headers.append(("Content-Length", str(len(content))))
        start_response(status, headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [content]

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
            f"<MaxKeys>{most}</MaxKeys><KeyCount>{len(found)}</KeyCount>"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{token if more else ''}"
            f"{''.join(xml for _, xml in found)}</ListBucketResult>"
        )

    def own(self) -> list[tuple[str, str]]:
        """The keys and the XML of the files that this application serves itself."""
        changed = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(CHANGED))
        return [
            (
                key,
                f"<Contents><Key>{key}</Key><LastModified>{changed}</LastModified>"
                f"<ETag>&quot;{key}&quot;</ETag><Size>{len(content)}</Size>"
                "<StorageClass>STANDARD</StorageClass></Contents>",
            )
            for key, content in self.files.items()
        ]

    def others(self, environ: dict[str, Any], delimiter: str) -> list[tuple[str, str]]:
        """The keys and the XML of the folder's other entries, as moto lists them on one page."""
        asked = f"list-type=2&prefix={quote(self.prefix, safe='')}"
        asked += f"&delimiter={quote(delimiter, safe='')}" if delimiter else ""
        body = b"".join(self.app({**environ, "QUERY_STRING": asked}, lambda *_: None)).decode()
        found: list[tuple[str, str]] = []
        for kind, name in (("Contents", "Key"), ("CommonPrefixes", "Prefix")):
            for xml in re.findall(f"<{kind}>.*?</{kind}>", body, re.DOTALL):
                [key] = re.findall(f"<{name}>(.*?)</{name}>", xml)
                found.append((unquote(key), xml))
        return found


def main(port: int, folder: str, files: int, seconds: float) -> None:
    """Runs the server until the process is terminated."""
    s3_server.serve(port, lambda app: ManyObjects(app, folder, files, seconds))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
