"""Commands for cards: small files of single nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from nodeprint.cli.app import SHOW, app
from nodeprint.cli.shared import Json, leave_out, print_json
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings.texts import say

if TYPE_CHECKING:
    from nodeprint.cards.card import Card


@app.command(rich_help_panel=SHOW, epilog="Example: nodeprint publish results/main/nodes/cn017 --to card.json")
def publish(
    where: Annotated[
        Path | None,
        typer.Argument(help="A node's folder below nodes/; the last measurement of `nodeprint here` without it."),
    ] = None,
    to: Annotated[Path, typer.Option(help="The card's file.")] = Path("card.json"),
    sign: Annotated[Path | None, typer.Option(help="Sign it with this ssh key.")] = None,
) -> None:
    """Write a node as one small file to send around.

    It has the medians of all parts, the matrix to a tenth of a nanosecond, settings and versions, and a hash; no name
    of a host, user or site.
    """
    from nodeprint.cards import hashing, of_campaign, signing
    from nodeprint.here import measure

    card = of_campaign.measured(where or measure.newest(measure.cache())).card
    if card.matrix is None and not card.figures:
        raise NodeprintError("nothing was measured", where=where, advice="measure it first: `nodeprint here`")
    hashing.write(signing.sign(card, sign) if sign else card, to)
    typer.echo(say("commands", "published", path=to, card=_called(card), bytes=to.stat().st_size))


@app.command(
    rich_help_panel=SHOW,
    epilog="Examples: nodeprint verify results/main; nodeprint verify card.json --signers allowed_signers",
)
def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Judged campaigns, or cards (files of `nodeprint publish`).", show_default=False),
    ],
    signers: Annotated[
        Path | None, typer.Option(help="Accept signatures of these alone: a file of allowed signers (ssh-keygen).")
    ] = None,
    json: Json = False,
) -> None:
    """Check that campaigns and cards are unchanged.

    Of a campaign each file that is missing, changed or new since it was judged is named; exits with status 3 if there
    is one. Exits with status 2 if a card was changed or a signature does not hold.
    """
    from nodeprint.cards import hashing, signing

    results: dict[str, object] = {}
    differ = False
    for path in paths:
        if path.is_dir():
            leave_out({"--signers": signers}, f"is for cards, and {path} is a campaign", "leave it out")
            differ |= _verify_campaign(path, results, json=json)
            continue
        card = hashing.read(path)
        by = signing.signer(card, signers)
        if signers is not None and not by:
            raise NodeprintError("is not signed", where=path, advice="ask its author for a signed one")
        results[str(path)] = {
            "processor": card.processor.name,
            "simulated": card.origin.simulated,
            "sha256": card.sha256,
            "signed_by": by,
        }
        if not json:
            signed = say("commands", "signed", who=by) if by else say("commands", "unsigned")
            typer.echo(say("commands", "verified", path=path, card=_called(card), signed=signed))
    if json:
        print_json(results)
    if differ:
        raise typer.Exit(3)


def _verify_campaign(campaign: Path, results: dict[str, object], *, json: bool) -> bool:
    """Print what of a campaign is not as it was judged; whether anything is."""
    from nodeprint.data.store import manifest

    sealed = manifest.read(campaign)
    changes = manifest.changes(campaign, sealed)
    results[str(campaign)] = {"files": len(sealed.files), **structs.asdict(changes)}
    if not json:
        for kind, names in structs.asdict(changes).items():
            for name in names:
                typer.echo(printable(f"{campaign / name}: {kind}", 500))
        if not changes:
            typer.echo(say("commands", "as_judged", campaign=campaign, files=len(sealed.files)))
    return bool(changes)


def _called(card: Card) -> str:
    """What a card is of: its processor, and that it was simulated."""
    processor = card.processor.name or "unknown processor"
    return f"SIMULATED, {processor}" if card.origin.simulated else processor


@app.command(rich_help_panel=SHOW, epilog="Example: nodeprint atlas cards --to site")
def atlas(
    folder: Annotated[Path, typer.Argument(help="Cards, and matrices of other tools named after their processors.")],
    to: Annotated[Path, typer.Option(help="The folder of the site.")] = Path("atlas"),
) -> None:
    """Make a static site of many machines.

    One can search it by processor and see any two machines on one scale, their classes, structure and origin.
    """
    from nodeprint.report import atlas as sites

    made, refused = sites.write(folder, to)
    for reason in refused:
        typer.echo(f"left out: {reason}", err=True)
    typer.echo(made)
