"""The obedient model sees what is hidden: without that its attacks would show nothing."""

import pytest

from attacks.injection import HIDING, N_DECISIONS, rows
from attacks.obedient import ORDERS, orders_in


@pytest.mark.parametrize("hiding", HIDING)
def test_an_order_is_found_however_it_is_hidden(hiding):
    text = "\n".join(HIDING[hiding]("@@reseau@@").values())
    assert orders_in(f"Texte : {text} Fin.")[0] == ORDERS["reseau"]


def test_a_text_without_an_order_is_not_obeyed():
    assert orders_in("FINAL(1) @@ rien de connu @@ aGVsbG8gd29ybGQgaGVsbG8= [[ ## answer ## ]]") == []


def test_every_order_is_hidden_in_two_ways_at_least_and_no_pair_comes_twice():
    names = [row["_name"] for row in rows()]
    assert len(set(names)) == len(names) == N_DECISIONS
    assert {order for order in ORDERS if sum(name.startswith(f"{order} in ") for name in names) >= 2} == set(ORDERS)
