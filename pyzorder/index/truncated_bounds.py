"""Truncates bounds of long strings and binaries, which are compared as unsigned bytes.

The rules and their proof are those of the Scala class TruncatedBounds. A prefix is never greater
than the whole value. If the last character or byte of a prefix is incremented, the result is
greater than all values that start with the prefix.
"""

from __future__ import annotations

#: Values longer than this many bytes are truncated to at most this length.
MAX_BYTES = 256


def truncated(least: bytes, greatest: bytes, is_text: bool) -> tuple[bytes, bytes] | None:
    """Returns bounds of at most about `MAX_BYTES` each, or None if no upper bound is that short.

    Args:
        is_text: whether the values are UTF-8. If so, an upper bound remains valid UTF-8.
    """
    upper = greatest if len(greatest) <= MAX_BYTES else _raised(_cut(greatest), is_text)
    return None if upper is None else (_cut(least), upper)


def _cut(value: bytes) -> bytes:
    """Returns a prefix of at most `MAX_BYTES` that does not end within a UTF-8 character."""
    if len(value) <= MAX_BYTES:
        return value
    end = MAX_BYTES
    while end > MAX_BYTES - 4 and value[end] & 0xC0 == 0x80:
        end -= 1
    return value[: MAX_BYTES if value[end] & 0xC0 == 0x80 else end]


def _raised(prefix: bytes, is_text: bool) -> bytes | None:
    if is_text:
        try:
            return _raised_text(prefix.decode())
        except UnicodeDecodeError:  # not valid UTF-8: increment the last byte instead
            pass
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _raised_text(prefix: str) -> bytes | None:
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    last = ord(kept[-1])
    # Surrogates are not characters, so U+E000 follows U+D7FF.
    return (kept[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)).encode()
