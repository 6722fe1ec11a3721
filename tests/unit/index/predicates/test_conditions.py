"""Conditions in SQL are either parsed and rendered as SQL with the same meaning, or rejected as
unsupported."""

from __future__ import annotations

import pytest

from pyzorder.index.predicates.conditions import NotUnderstood, Text, parse

# condition | the SQL that is passed to Spark, or "-" if the condition is not supported
CASES = """
a = 5 | (`a` = 5)
NOT (a = 5 AND b.c < 'x') | (NOT ((((`a` = 5) AND (`b`.`c` < 'x')))))
a NOT IN (1, NULL) | (NOT (`a` IN (1, NULL)))
a NOT LIKE 'x%' | (`a` NOT LIKE 'x%')
a BETWEEN 1 AND 2L | (`a` BETWEEN 1 AND CAST(2 AS BIGINT))
a = -5Y | (`a` = (- CAST(5 AS TINYINT)))
a IS NOT TRUE | (NOT (`a` IS TRUE))
`odd ``name` = 1.5e3 | (`odd ``name` = 1.5e3)
year(a) = 2024 | (year(`a`) = 2024)
CAST(a AS DECIMAL(10,2)) > DATE'2024-01-01' | (CAST(`a` AS DECIMAL(10, 2)) > CAST('2024-01-01' AS DATE))
CAST(a AS TIMESTAMP) = TIMESTAMP_NTZ'2024-01-01 00:00:00' | (CAST(`a` AS TIMESTAMP) = CAST('2024-01-01 00:00:00' AS TIMESTAMP_NTZ))
CASE WHEN a > 5 THEN true ELSE b END | CASE WHEN (`a` > 5) THEN TRUE ELSE `b` END
x = X'00ff' | (`x` = X'00ff')
(a = b) IS NULL | (((`a` = `b`)) IS NULL)
TRY_CAST(a AS INT) = 5 | -
a = (b IS NULL) | (`a` = ((`b` IS NULL)))
a LIKE 'x/%' ESCAPE '/' | -
a LIKE ANY ('a%', 'b%') | -
a = 'it''s' | -
a = r'b' | -
a = 'b\\\\c' | -
a |> b | -
a = 1.5BD | (`a` = CAST('1.5' AS DECIMAL(2, 1)))
a = "b" | -
a = ${x} | -
CAST(a AS CHAR(3)) = 'b' | -
a = :p | -
a IN (SELECT 1) | -
my_udf(a) = 5 | -
rand() < a | -
a = 'b' COLLATE UNICODE_CI | -
a[0] = 5 | -
current_date() > a | -
a = INTERVAL 5 DAYS | -
a RLIKE 'b' | -
a = 5 AND | -
"""


def spelled(condition: str) -> str:
    """The SQL that is passed to Spark, or "-" if the condition is not supported."""

    def column(parts: tuple[str, ...]) -> str:
        return ".".join(f"`{part.replace('`', '``')}`" for part in parts)

    try:
        return Text(column).of(parse(condition))
    except NotUnderstood:
        return "-"


@pytest.mark.parametrize("line", [line for line in CASES.splitlines() if line])
def test_conditions(line: str) -> None:
    condition, _, expected = line.partition(" | ")
    found = spelled(condition)
    assert found.replace("(", "").replace(")", "") == expected.replace("(", "").replace(")", "")
