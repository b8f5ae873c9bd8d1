"""Record files with another header, complete as if a kernel had written them."""

import json

from nodeprint.data.format import integrity


def with_header(text: str, **changes: object) -> str:
    """The text of a record file of one segment whose header has these values, with its checksum."""
    head, *values, last = text.splitlines(keepends=True)
    trailer = json.loads(last)
    trailer.pop("crc32", None)
    return integrity.sealed(json.dumps(json.loads(head) | changes) + "\n" + "".join(values), trailer)
