"""The clients that BI tools are made with: JDBC, PyHive and SQLAlchemy, each with the same two methods."""

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

#: Spark's jars hold Hive's JDBC driver, and the Scala compiler as well.
JARS = Path(pyspark.__file__).parent / "jars"

USER = "me"


class Client(Protocol):
    """A connection of its own; values come as text, however the client gives them."""

    def rows(self, statement: str) -> list[list[str | None]]:
        """Runs a statement and returns all rows that it has."""

    def close(self) -> None:
        """Ends the connection."""


def java(*arguments: str) -> list[str]:
    """A command of the Java that Spark runs on, small, with Spark's jars."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else "java"
    options = ["-Xss8m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return [program, *options, *arguments]


def compile_jdbc_client(folder: Path) -> Path:
    """The classes of JdbcClient.scala, compiled into a folder."""
    source = Path(__file__).with_name("JdbcClient.scala")
    command = java("-cp", f"{JARS}/*", "scala.tools.nsc.Main", "-usejavacp", "-d", str(folder))
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Jdbc:
    """JdbcClient.scala in a JVM of its own, as a tool's JDBC driver is."""

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
        """One request of JdbcClient.scala, and what it answers; raises what it raised."""
        with self._turn:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, "the JDBC client has ended"
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def query(self, sql: str) -> dict[str, Any]:
        """Columns, as ResultSetMetaData describes them, and rows of a statement."""
        return self.ask(do="query", sql=sql)

    def prepared(self, sql: str, *values: tuple[str, object]) -> dict[str, Any]:
        """The same of a PreparedStatement; each value with its type."""
        listed = [[kind, str(value)] for kind, value in values]
        return self.ask(do="prepared", sql=sql, values=listed)

    def metadata(self, call: str, *arguments: Any) -> dict[str, Any]:
        """What a method of DatabaseMetaData returns."""
        return self.ask(do="metadata", call=call, arguments=arguments)

    def rows(self, statement: str) -> list[list[str | None]]:
        found: list[list[str | None]] = self.query(statement)["rows"]
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def _holds_rows(columns: Iterable[str]) -> bool:
    """Whether a result is more than `Result`, the column of no rows that Spark names where there
    is none, and that PyHive cannot fetch of Spark 3.5."""
    return list(columns) not in ([], ["Result"])


class PyHive:
    """PyHive's own cursor."""

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
    """SQLAlchemy with PyHive's dialect, as Superset has it."""

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
