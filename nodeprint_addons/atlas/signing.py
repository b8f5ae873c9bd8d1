"""Signatures of cards by the ssh keys that people have: `ssh-keygen -Y`, in the namespace of nodeprint."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from msgspec.structs import replace

from nodeprint.errors import NodeprintError, printable, unreadable
from nodeprint_addons.atlas.card import Card, UnverifiedError
from nodeprint_addons.atlas.card_file import hashed

_NAMESPACE = "nodeprint"
_SECONDS = 120.0


def sign(card: Card, key: Path) -> Card:
    """The card with the signature of its hash by the private `key` (or the public one of an agent's).

    Raises NodeprintError with ssh-keygen's sentence.
    """
    card = hashed(card)
    with tempfile.TemporaryDirectory() as folder:
        message = Path(folder, "hash")
        message.write_text(card.sha256)
        _ssh_keygen("sign", "-f", str(key), "-n", _NAMESPACE, str(message), where=key)
        return replace(card, signature=message.with_name("hash.sig").read_text())


def signer(card: Card, signers: Path | None = None) -> str:
    """Who signed a card: the key's fingerprint, or its principal in the file of allowed `signers`
    (ssh-keygen(1), ALLOWED SIGNERS). Empty where nobody did. Raises NodeprintError where that file cannot be read or
    the signature does not hold."""
    if signers is not None:
        try:
            signers.read_bytes()
        except OSError as error:
            raise unreadable(signers, error) from error
    if not card.signature:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        signature = Path(folder, "signature")
        signature.write_text(card.signature)
        options = ("-n", _NAMESPACE, "-s", str(signature))
        if signers is None:
            answer = _ssh_keygen("check-novalidate", *options, message=card.sha256)
            return answer.rpartition("with ")[2].strip()
        principals = _ssh_keygen("find-principals", "-f", str(signers), "-s", str(signature), where=signers)
        principal = principals.splitlines()[0].split(",")[0]
        _ssh_keygen("verify", *options, "-f", str(signers), "-I", principal, message=card.sha256, where=signers)
        return principal


def _ssh_keygen(action: str, *words: str, message: str = "", where: Path | None = None) -> str:
    try:
        done = subprocess.run(
            ["ssh-keygen", "-Y", action, *words],
            input=message,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise NodeprintError("ssh-keygen is not installed", advice="install openssh-client") from error
    except subprocess.TimeoutExpired as error:
        raise NodeprintError("ssh-keygen does not answer", where=where, advice="name another key") from error
    if done.returncode:
        messages = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        problem = f"ssh-keygen: {printable(messages[-1] if messages else 'failed')}"
        if action == "sign":
            raise NodeprintError(problem, where=where, advice="specify an ssh key")
        raise UnverifiedError(problem, where=where, advice="the card was changed, or another key signed it")
    return done.stdout
