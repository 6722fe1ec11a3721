"""The options that all commands with a Spark session share.

They select the session and the output format.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click


@dataclass(frozen=True)
class Settings:
    """The values of the shared options."""

    master: str | None = None
    remote: str | None = None
    hive: bool = False
    conf: dict[str, str] = field(default_factory=dict)
    log: Path | None = None
    quiet: bool = False
    json: bool = False


class SettingType(click.ParamType[tuple[str, str]]):
    """A parameter type for Spark settings, written as key=value."""

    name = "key=value"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, str]:
        """Returns the key and the value. The value may contain equals signs."""
        if isinstance(value, tuple):
            return value
        key, equals, setting = value.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{value!r} is not a setting: write --conf key=value.")
        return key.strip(), setting.strip()


OPTIONS = [
    click.option(
        "--master", metavar="URL", help="Spark master; default: as set in spark-defaults.conf."
    ),
    click.option(
        "--remote",
        envvar="SPARK_REMOTE",
        metavar="sc://…",
        help="Address of a Spark Connect server with pyzorder; default: $SPARK_REMOTE.",
    ),
    click.option(
        "--hive", is_flag=True, help="Use the Hive metastore that Spark is configured to use."
    ),
    click.option(
        "--metastore", metavar="thrift://…", help="Use the Hive metastore at this address."
    ),
    click.option("--warehouse", metavar="DIR", help="Folder for the catalog's tables."),
    click.option(
        "--conf",
        type=SettingType(),
        multiple=True,
        metavar="K=V",
        help="Spark setting, as key=value; repeatable.",
    ),
    click.option(
        "--log",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Append Spark's log to this file.",
    ),
    click.option("--quiet", "-q", is_flag=True, help="Do not show progress."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document."),
]


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator that adds the shared options.

    The command receives them as its first argument, a `Settings`.
    """

    @functools.wraps(command)
    def with_settings(
        master: str | None,
        remote: str | None,
        hive: bool,
        metastore: str | None,
        warehouse: str | None,
        conf: tuple[tuple[str, str], ...],
        log: Path | None,
        quiet: bool,
        as_json: bool,
        **others: Any,
    ) -> None:
        settings = dict(conf)
        if metastore:
            settings["spark.hadoop.hive.metastore.uris"] = metastore
        if warehouse:
            settings["spark.sql.warehouse.dir"] = warehouse
        given = {"--master": master, "--hive": hive, "--metastore": metastore, "--log": log}
        clash = [option for option, value in {**given, "--warehouse": warehouse}.items() if value]
        if remote and clash:
            raise click.UsageError(
                f"--remote connects to a running server: set {', '.join(clash)} where that server "
                "is started."
            )
        command(
            Settings(master, remote, hive or metastore is not None, settings, log, quiet, as_json),
            **others,
        )

    for option in reversed(OPTIONS):
        with_settings = option(with_settings)
    return with_settings
