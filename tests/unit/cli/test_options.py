"""The options that every command accepts become Spark settings, and conflicting options are
rejected."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from pyzorder.cli.options import Settings, SettingType, session_options


@pytest.mark.parametrize(
    ("text", "setting"),
    [("a=b", ("a", "b")), (" a = b ", ("a", "b")), ("a=b=c", ("a", "b=c")), ("a=", ("a", ""))],
)
def test_settings(text: str, setting: tuple[str, str]) -> None:
    assert SettingType().convert(text, None, None) == setting


@pytest.mark.parametrize("text", ["a", "=b", " =b", ""])
def test_no_settings(text: str) -> None:
    with pytest.raises(click.BadParameter):
        SettingType().convert(text, None, None)


def given(*arguments: str) -> tuple[Settings | None, str]:
    """The settings that a command receives (None if it does not run), and its output."""
    found: list[Settings] = []

    @click.command()
    @session_options
    def command(settings: Settings) -> None:
        found.append(settings)

    said = CliRunner(env={"SPARK_REMOTE": ""}).invoke(command, arguments)
    return (found[0] if found else None), said.output


def test_a_metastore_and_a_warehouse_are_settings() -> None:
    settings, _ = given("--metastore", "thrift://m", "--warehouse", "/w", "--conf", "k=v")
    assert settings is not None and settings.hive
    assert settings.conf == {
        "k": "v",
        "spark.hadoop.hive.metastore.uris": "thrift://m",
        "spark.sql.warehouse.dir": "/w",
    }


@pytest.mark.parametrize("clash", [["--hive"], ["--master", "local"], ["--warehouse", "/w"]])
def test_a_server_has_its_own(clash: list[str]) -> None:
    settings, said = given("--remote", "sc://h", *clash)
    assert settings is None and clash[0] in said


def test_a_server_takes_settings() -> None:
    settings, _ = given("--remote", "sc://h", "--conf", "k=v")
    assert settings is not None and (settings.remote, settings.conf) == ("sc://h", {"k": "v"})
