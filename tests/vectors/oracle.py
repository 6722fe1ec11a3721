"""A simple and slow implementation of the z-value format on strings of '0' and '1'.

It does not share any code with the encoders. `python tests/vectors/oracle.py` computes the results
in this folder's *.jsonl files from the other fields in these files. A test checks that the files
are up to date.
"""

from __future__ import annotations

import json
import re
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

WIDTHS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "date": 32, "timestamp": 64,
          "timestamp_ntz": 64, "interval month": 32, "interval second": 64}  # fmt: skip


def parse(text: str | None, data_type: str) -> Any:
    """The value that a vector's text represents."""
    if text is None:
        return None
    if data_type == "boolean":
        return {"true": True, "false": False}[text]
    if data_type in {"float", "double"}:
        return float.fromhex(text) if "0x" in text else float(text)
    if data_type.startswith("decimal"):
        return Decimal(text)
    if data_type == "string":
        return text
    if data_type == "binary":
        return bytes.fromhex(text)
    return int(text)


def bias(number: int, width: int) -> str:
    """A signed number in `width` bits, with an offset that maps the smallest number to 000…0."""
    return format(number + 2 ** (width - 1), f"0{width}b")


def float_bits(number: float, code: str, width: int) -> str:
    """The IEEE bits in sortable form. For positive numbers, the sign bit is set. For negative
    numbers, all bits are inverted."""
    if number != number:
        return "1" * (10 if width == 32 else 13) + "0" * (width - (10 if width == 32 else 13))
    raw = "".join(format(byte, "08b") for byte in struct.pack(">" + code, number or 0.0))
    if raw[0] == "0":
        return "1" + raw[1:]
    return raw.translate(str.maketrans("01", "10"))


def digits(value: Decimal, scale: int) -> int:
    """The unscaled value of a decimal."""
    sign, numbers, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, numbers)) + "0" * (exponent + scale))
    return -number if sign else number


def decimal_width(precision: int) -> int:
    """The smallest multiple of 8 bits that can represent all numbers from -99…9 to 99…9."""
    return next(8 * b for b in range(1, 17) if 2 ** (8 * b - 1) > int("9" * precision))


def whole_bits(value: Any, data_type: str) -> str:
    """All bits of a value in sortable form."""
    if data_type == "boolean":
        return "1" if value else "0"
    if data_type in WIDTHS:
        return bias(value, WIDTHS[data_type])
    if data_type == "time":
        return format(value, "047b")
    if data_type == "float":
        return float_bits(value, "f", 32)
    if data_type == "double":
        return float_bits(value, "d", 64)
    if data_type.startswith("decimal"):
        precision, scale = map(int, re.findall(r"\d+", data_type))
        return bias(digits(value, scale), decimal_width(precision))
    raw = value.encode() if data_type == "string" else value
    return "".join(format(byte, "08b") for byte in raw)


def ordered_bits(value: Any, data_type: str) -> str:
    """The first 64 bits of a value in sortable form. Only null is encoded as 64 zeros."""
    if value is None:
        return "0" * 64
    wide = re.fullmatch(r"decimal\((\d+),(\d+)\)", data_type)
    if wide is not None and int(wide[1]) > 18:
        number = digits(value, int(wide[2]))
        magnitude = format(abs(number), "b").lstrip("0")
        bits = "1" + format(len(magnitude), "07b") + magnitude[1:][:56].ljust(56, "0")
        if number < 0:
            bits = bits.translate(str.maketrans("01", "10"))
    else:
        bits = whole_bits(value, data_type)[:64].ljust(64, "0")
    return bits if "1" in bits else "0" * 63 + "1"


def interleave(columns: list[str]) -> str:
    """Takes one bit from each column in turn, or '0' if the column has no more bits. The result has
    at most 8192 bits."""
    longest = max(map(len, columns))
    return "".join(c[i] if i < len(c) else "0" for i in range(longest) for c in columns)[:8192]


def to_hex(bits: str) -> str:
    """Converts bits to hexadecimal digits, padded with zeros to whole bytes."""
    filled = bits.ljust((len(bits) + 7) // 8 * 8, "0")
    return "".join(format(int(filled[i : i + 4], 2), "x") for i in range(0, len(filled), 4))


def from_hex(text: str) -> str:
    """Converts hexadecimal digits to bits."""
    return "".join(format(int(digit, 16), "04b") for digit in text)


def rank(value: Any, boundaries: list[Any], data_type: str) -> int:
    """The range id of a value, computed by comparing its bits with those of each boundary."""
    if value is None:
        return 0
    keys = {whole_bits(b, data_type) for b in boundaries if b is not None}
    return 1 + sum(key <= whole_bits(value, data_type) for key in keys)


def answer(name: str, vector: dict[str, Any]) -> dict[str, Any]:
    """The result for a vector in the file `name`, computed from its other fields."""
    if name == "ordered_bytes":
        value = parse(vector["value"], vector["type"])
        whole = None if value is None else to_hex(whole_bits(value, vector["type"]))
        return {"bits": to_hex(ordered_bits(value, vector["type"])), "whole": whole}
    if name == "interleave_bits":
        return {"z": to_hex(interleave([from_hex(c or "") for c in vector["columns"]]))}
    if name == "range_id":
        parsed = [parse(b, vector["type"]) for b in vector["boundaries"]]
        value = parse(vector["value"], vector["type"])
        return {"range_id": rank(value, parsed, vector["type"])}
    n = len(vector["ids"])
    bits = min(31, 63 // n)
    ids = [i * 2**bits // c for i, c in zip(vector["ids"], vector["counts"], strict=True)]
    return {"z": int(interleave([format(i, f"0{bits}b") for i in ids]), 2)}


def read(name: str) -> list[dict[str, Any]]:
    """The vectors in a file."""
    return [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text().splitlines()]


def main() -> None:
    for file in sorted(HERE.glob("*.jsonl")):
        lines = [{**v, **answer(file.stem, v)} for v in read(file.stem)]
        file.write_text("".join(json.dumps(v, ensure_ascii=True) + "\n" for v in lines))


if __name__ == "__main__":
    main()
