"""The beginning of a long text, for people: what lists and notifications show of a result."""

LONGEST_BYTES = 4096
CUT = "\n…[truncated]"


def summary(text: str, longest_bytes: int = LONGEST_BYTES) -> str:
    """Whole characters, and a mark where the rest was cut off; what was cut stays as it is."""
    data = text.removesuffix(CUT).encode(errors="replace")
    if len(data) <= longest_bytes:
        return text
    return data[:longest_bytes].decode(errors="ignore") + CUT
