"""The commands for cards: small files of single nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeprint.cli.shared import Json, output_directory, output_file, print_json
from nodeprint.errors import NodeprintError
from nodeprint_addons.atlas.atlas_texts import say

if TYPE_CHECKING:
    from nodeprint_addons.atlas.card import Card


commands = typer.Typer()


@commands.command(epilog="Example: nodeprint publish results/main/nodes/cn017 --to card.json")
def publish(
    where: Annotated[
        Path | None,
        typer.Argument(
            help="A node's directory in nodes/ of a campaign (default: the last measurement of `nodeprint here`)."
        ),
    ] = None,
    to: Annotated[Path, typer.Option(callback=output_file, metavar="FILE", help="File of the card.")] = Path(
        "card.json"
    ),
    sign: Annotated[Path | None, typer.Option(metavar="KEY", help="Sign it with this ssh key.")] = None,
) -> None:
    """Write a node as one small file to share (a card).

    It has the medians of all components, the matrix to 0.1 ns, settings, versions and a hash. It has no name of a host,
    user or site.
    """
    from nodeprint.here import measure
    from nodeprint.summary import measured_node
    from nodeprint_addons.atlas import card_file, signing
    from nodeprint_addons.atlas.card import card_of

    card = card_of(measured_node.measured(where or measure.newest(measure.cache())).summary)
    if card.matrix is None and not card.figures:
        raise NodeprintError("nothing was measured", where=where, advice="measure it first: `nodeprint here`")
    card_file.write(signing.sign(card, sign) if sign else card, to)
    typer.echo(say("published", path=to, card=_called(card), bytes=to.stat().st_size))


@commands.command(
    "verify-card",
    epilog="Example: nodeprint verify-card card.json --signers allowed_signers",
)
def verify_card(
    cards: Annotated[
        list[Path], typer.Argument(metavar="CARD...", help="Files of `nodeprint publish`.", show_default=False)
    ],
    signers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Accept only the keys of this file of allowed signers (ssh-keygen(1))."),
    ] = None,
    json: Json = False,
) -> None:
    """Check that cards are unchanged.

    Exits with status 3 if a card was changed or a signature does not hold.
    """
    from nodeprint_addons.atlas import card_file, signing
    from nodeprint_addons.atlas.card import UnverifiedError

    results: dict[str, object] = {}
    are_verified = True
    for path in cards:
        try:
            card = card_file.read(path)
            by = signing.signer(card, signers)
            if signers is not None and not by:
                raise UnverifiedError("is not signed", where=path, advice="ask its author for a signed one")
        except UnverifiedError as error:
            are_verified = False
            problem = str(error).removeprefix(f"{path}: ")
            results[str(path)] = {"problem": problem}
            if not json:
                typer.echo(f"{path}: {problem}")
            continue
        results[str(path)] = {
            "processor": card.processor.name,
            "simulated": card.origin.simulated,
            "sha256": card.sha256,
            "signed_by": by,
        }
        if not json:
            signed = say("signed", who=by) if by else say("unsigned")
            typer.echo(say("verified", path=path, card=_called(card), signed=signed))
    if json:
        print_json(results)
    if not are_verified:
        raise typer.Exit(3)


def _called(card: Card) -> str:
    """Return the processor of a card, marked if it was simulated."""
    processor = card.processor.name or "unknown processor"
    return f"SIMULATED, {processor}" if card.origin.simulated else processor


@commands.command(epilog="Example: nodeprint atlas cards --to site")
def atlas(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Cards, and matrices of other tools named after their processors.", show_default=False
        ),
    ],
    to: Annotated[Path, typer.Option(callback=output_directory, metavar="DIR", help="Directory of the site.")] = Path(
        "atlas"
    ),
) -> None:
    """Make a static site of many machines.

    Readers search it by processor and compare any two machines on one scale.
    """
    from nodeprint_addons.atlas import atlas_site

    made, refused = atlas_site.write(folder, to)
    for reason in refused:
        typer.echo(f"left out: {reason}", err=True)
    typer.echo(made)
