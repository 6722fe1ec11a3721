"""A common interface to JDBC, PyHive and SQLAlchemy, the clients that BI tools use."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import pyspark
import sqlalchemy
from pyhive import hive

#: Spark's jars include Hive's JDBC driver and the Scala compiler.
JARS = Path(pyspark.__file__).parent / "jars"

USER = "me"


class Client(Protocol):
    """A connection that returns all values as text, regardless of the client's types."""

    def rows(self, statement: str) -> list[list[str | None]]:
        """Runs a statement and returns all its rows."""

    def close(self) -> None:
        """Closes the connection."""


def java(*arguments: str) -> list[str]:
    """A command line that runs Java from JAVA_HOME or, if JAVA_HOME is not set, from the PATH. The
    options suit short-lived processes."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else "java"
    options = ["-Xss8m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return [program, *options, *arguments]


def compile_jdbc_client(folder: Path) -> Path:
    """Compiles JdbcClient.scala into a folder."""
    source = Path(__file__).with_name("JdbcClient.scala")
    command = java("-cp", f"{JARS}/*", "scala.tools.nsc.Main", "-usejavacp", "-d", str(folder))
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Jdbc:
    """A connection through Hive's JDBC driver. JdbcClient.scala runs the driver in a separate
    JVM."""

    def __init__(self, port: int, classes: Path) -> None:
        url = f"jdbc:hive2://127.0.0.1:{port}/default"
        logging = "-Dlog4j2.level=OFF"
        command = java("-Xmx96m", logging, "-cp", f"{classes}:{JARS}/*", "JdbcClient", url, USER)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._turn = threading.Lock()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Sends a request to JdbcClient.scala. Returns the answer, or raises the error that
        JdbcClient.scala reports."""
        with self._turn:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, "the JDBC client has exited"
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def query(self, sql: str) -> dict[str, Any]:
        """Runs a statement. Returns its rows, and the description of its columns from
        ResultSetMetaData."""
        return self.ask(do="query", sql=sql)

    def prepared(self, sql: str, *values: tuple[str, object]) -> dict[str, Any]:
        """Runs a PreparedStatement with parameters of the given types and values. Returns the same
        fields as `query`."""
        listed = [[kind, str(value)] for kind, value in values]
        return self.ask(do="prepared", sql=sql, values=listed)

    def metadata(self, call: str, *arguments: Any) -> dict[str, Any]:
        """Calls a method of DatabaseMetaData and returns its result."""
        return self.ask(do="metadata", call=call, arguments=arguments)

    def rows(self, statement: str) -> list[list[str | None]]:
        found: list[list[str | None]] = self.query(statement)["rows"]
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def _holds_rows(columns: Iterable[str]) -> bool:
    """Whether a statement returns rows. For a statement that returns no rows, Spark reports a
    single column `Result`. With Spark 3.5, PyHive fails if it fetches the rows of such a
    statement."""
    return list(columns) not in ([], ["Result"])


class PyHive:
    """A connection through PyHive."""

    def __init__(self, port: int) -> None:
        self._connection = hive.connect("127.0.0.1", port=port, username=USER)

    def rows(self, statement: str) -> list[list[str | None]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            names = [column[0] for column in cursor.description or ()]
            found = cursor.fetchall() if _holds_rows(names) else []
            return [[None if v is None else str(v) for v in row] for row in found]

    def close(self) -> None:
        self._connection.close()


class SqlAlchemy:
    """A connection through SQLAlchemy with PyHive's dialect, as in Superset."""

    def __init__(self, port: int) -> None:
        self.engine = sqlalchemy.create_engine(f"hive://{USER}@127.0.0.1:{port}/default")
        self._connection = self.engine.connect()

    def rows(self, statement: str) -> list[list[str | None]]:
        result = self._connection.execute(sqlalchemy.text(statement))
        found = result.fetchall() if result.returns_rows and _holds_rows(result.keys()) else []
        return [[None if v is None else str(v) for v in row] for row in found]

    def close(self) -> None:
        self._connection.close()
        self.engine.dispose()
