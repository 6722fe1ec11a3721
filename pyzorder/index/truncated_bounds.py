"""Short bounds for long strings and binaries, in the order of unsigned bytes.

The rules and their proof are those of Scala's TruncatedBounds: a beginning is not greater
than the whole; a beginning whose last character, or byte, is raised is greater than all that begin
as it did.
"""

from __future__ import annotations

#: Longer values are cut to at most this many bytes.
MAX_BYTES = 256


def truncated(least: bytes, greatest: bytes, is_text: bool) -> tuple[bytes, bytes] | None:
    """Bounds of about MAX_BYTES at most; None: there is no upper one."""
    upper = greatest if len(greatest) <= MAX_BYTES else _raised(_cut(greatest), is_text)
    return None if upper is None else (_cut(least), upper)


def _cut(value: bytes) -> bytes:
    """The beginning, not cut inside a character where the bytes are UTF-8."""
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
        except UnicodeDecodeError:  # bytes that are no text: raised as bytes
            pass
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _raised_text(prefix: str) -> bytes | None:
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    last = ord(kept[-1])
    # Surrogates are no characters of their own: U+E000 follows U+D7FF.
    return (kept[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)).encode()
