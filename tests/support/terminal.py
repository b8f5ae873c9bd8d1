"""What a program writes to a terminal."""

import os


def read_to_end(leader: int) -> str:
    """All that was written to the terminal whose leading side is `leader`, which is closed then. The other side must be
    closed here and end with its programs: one read gives only what has come so far, often the first line alone."""
    chunks: list[bytes] = []
    while True:
        try:
            chunk = os.read(leader, 1 << 16)
        except OSError:  # Linux's answer where no program has the other side open any more
            chunk = b""
        if not chunk:
            os.close(leader)
            return b"".join(chunks).decode()
        chunks.append(chunk)
