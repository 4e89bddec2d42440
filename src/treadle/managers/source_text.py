"""Breaking long lines of generated source."""

from __future__ import annotations

__all__ = ["wrapped"]

_WIDTH = 120
_OPEN, _CLOSE = "([{", ")]}"


def wrapped(line: str) -> list[str]:
    """Return a statement or a comment in lines of at most 120 columns, where it has a place to break.

    A call keeps its arguments on one line below it where they fit there, else it has a line for each. Sums and
    conditions without a call break before their operators.
    """
    if len(line) <= _WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    if line.lstrip().startswith("#"):
        return _wrapped_comment(line.strip(), indent)
    if (pair := _longest_call(line)) is not None:
        start, end = pair
        return _broken(line[: start + 1], _split(line[start + 1 : end], (",",)), line[end:], indent)
    head, equals, tail = line.partition(" = ")
    if equals:
        return _broken(f"{head} = (", _split(tail, (" + ", " or ", " and ")), ")", indent, separator="")
    return [line]


def _broken(head: str, parts: list[str], tail: str, indent: str, separator: str = ",") -> list[str]:
    inner = f"{indent}    "
    together = inner + f"{separator} ".join(parts)
    if separator and len(together) <= _WIDTH:
        return [head, together, indent + tail]
    return [head, *(line for part in parts for line in wrapped(f"{inner}{part}{separator}")), indent + tail]


def _longest_call(line: str) -> tuple[int, int] | None:
    """Return where the arguments of the call with the longest ones start and end, of those that are in no other."""
    stack: list[int] = []
    pairs: list[tuple[int, int]] = []
    for position, character in enumerate(line):
        if character in _OPEN:
            stack.append(position)
        elif character in _CLOSE:
            start = stack.pop()
            if not stack and character == ")":
                pairs.append((start, position))
    calls = [
        (start, end)
        for start, end in pairs
        if end - start > 1 and (line[start - 1].isalnum() or line[start - 1] == "_")
    ]
    return max(calls, key=lambda pair: pair[1] - pair[0], default=None)


def _split(text: str, separators: tuple[str, ...]) -> list[str]:
    """Return the parts of a text between separators outside of brackets; operators start the part that follows."""
    parts, depth, start, position = [], 0, 0, 0
    while position < len(text):
        depth += (text[position] in _OPEN) - (text[position] in _CLOSE)
        found = next((s for s in separators if depth == 0 and text.startswith(s, position)), None)
        if found is not None and position > start:
            parts.append(text[start:position].strip())
            start = position + (1 if found == "," else 0)
            position += len(found)
        else:
            position += 1
    parts.append(text[start:].strip())
    return parts


def _wrapped_comment(text: str, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text.lstrip("# "), _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
