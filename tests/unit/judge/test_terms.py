"""Terms of a layout: which belong to a component type, and what each is of residuals."""

from __future__ import annotations

import msgspec
import numpy as np

from nodeprint.judge import pairs, terms
from tests.support.fleets import made


def test_a_component_type_has_its_terms_and_no_others() -> None:
    of = pairs.of(made(nodes=1).pairs[0].pair_layout)
    named = {of.component_types[number]: numbers for number, numbers in of.by_component_type}
    assert {of.terms[i].component_type for i in named["core-near"].tolist()} == {"core-near"}
    assert sum(map(len, named.values())) == len(of.terms)
    assert of.indices("ccd").tolist() == named["ccd"].tolist() and not len(of.indices("no-such"))


def test_only_terms_of_cores_say_which_of_their_pairs_they_count() -> None:
    scopes = {
        component_type: terms.scoped(component_type, {"at": 3}) for component_type in (*terms.COMPONENT_TYPES, "clock")
    }
    assert scopes.pop("core-in") == {"at": 3, "inside": 1} and scopes.pop("core-near") == {"at": 3, "near": 1}
    assert scopes.pop("core-far") == {"at": 3, "across": 1}
    assert len(scopes) > 6 and all(where == {"at": 3} for where in scopes.values())


def test_a_shift_of_few_places_moves_a_mean_and_no_median() -> None:
    """Pairs are contrasts; of shares of the time, a term is the median of its places."""
    of = pairs.of(made(nodes=1).pairs[0].pair_layout)
    residual, places = np.zeros((1, len(of.layout.pairs))), of.terms[0].covers
    residual[0, places[:1]] = 0.5
    assert of.values(residual)[0, 0] > 0
    shares = msgspec.structs.replace(of, scale="share")
    assert shares.values(residual)[0, 0] == 0
    residual[0, places] = 0.5
    assert shares.values(residual)[0, 0] == 0.5
