"""From a conclusion and a log to tested statements: what is read, which images count, what the numbers say."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from workers.bias.statements import BiasStatement, check_statements
from workers.record.experiments import Observation
from workers.record.origins import Origin
from workers.record.stated_biases import read_statements

NIGHT = 'Weaker for balls at night (titles with "ball" and "night"): 0.40 on average, n=20, against 0.80, n=20.'
SNOW = '- stronger for balls on snow (titles with "ball" and "snow")'


def images(title, activations, origin=Origin.GENERATED, **given):
    return [
        Observation(f"{title} {at}", value, f"{title}{at}", origin=origin, measured=True, **given)
        for at, value in enumerate(activations)
    ]


def draw(mean, count=20, seed=0):
    return np.random.default_rng((seed, count)).normal(mean, 0.1, count).tolist()


def test_statements_are_read_with_their_direction_and_words():
    found = read_statements(f"I found two.\n{NIGHT}\n{SNOW}\nWeaker in general, it seems.")
    assert [(each.direction, each.subject, each.context) for each in found] == [
        ("weaker", ("ball",), "night"),
        ("stronger", ("ball",), "snow"),
    ]
    assert found[0].text == NIGHT


def test_a_real_difference_holds_with_its_sets_effect_and_interval():
    log = [images("red ball at night", draw(0.4)) + images("red ball by day", draw(0.8, seed=1))]
    (found,) = check_statements(NIGHT, log)
    assert found.holds
    assert {each.title.split()[-2] for each in found.inside} == {"night"}
    assert {each.title.split()[-2] for each in found.outside} == {"day"}
    assert found.inside_mean == pytest.approx(np.mean([each.activation for each in found.inside]))
    assert found.low < found.effect < found.high < 0
    assert found.p == found.adjusted_p < 0.001


def test_the_other_way_round_it_does_not_hold():
    log = [images("red ball at night", draw(0.8)) + images("red ball by day", draw(0.4, seed=1))]
    (found,) = check_statements(NIGHT, log)
    assert found.effect > 0
    assert not found.holds


def test_p_is_corrected_for_the_number_of_statements_and_the_greatest_effect_is_first():
    log = [
        images("ball at night on grass", draw(0.4))
        + images("ball by day on snow", draw(0.83, seed=1))
        + images("ball by day on grass", draw(0.8, seed=2))
    ]
    found = check_statements(f"{SNOW}\n{NIGHT}", log)
    assert [each.stated.context for each in found] == ["night", "snow"]
    assert all(each.adjusted_p >= each.p for each in found)
    assert found[0].adjusted_p == pytest.approx(2 * found[0].p)


def test_chance_alone_seldom_holds():
    held = 0
    for seed in range(40):
        log = [images("ball at night", draw(0.5, seed=seed)) + images("ball by day", draw(0.5, seed=1_000 + seed))]
        held += check_statements(NIGHT, log)[0].holds
    assert held <= 4


def test_neither_exemplars_nor_edits_nor_what_was_never_measured_count():
    kept = images("ball at night", draw(0.4, 8)) + images("ball by day", draw(0.8, 8), Origin.ORIGINAL)
    rest = images("ball at night", [9.0] * 5, Origin.EXEMPLAR) + images("ball at night", [9.0] * 5, Origin.EDITED)
    rest += [Observation("ball at night", 9.0, "k", origin=Origin.GENERATED)]
    (found,) = check_statements(NIGHT, [kept + rest])
    assert (len(found.inside), len(found.outside)) == (8, 8)


def test_what_first_raised_a_suspicion_is_left_out_once_fresh_images_suffice():
    first = images("ball at night", [0.0] * 10) + images("ball by day", [1.0] * 10)
    fresh = images("ball at night", draw(0.5)) + images("ball by day", draw(0.5, seed=1))
    (found,) = check_statements(NIGHT, [first, fresh])
    assert len(found.inside) == 20
    assert not found.holds
    (few,) = check_statements(NIGHT, [first, fresh[:3]])
    assert len(few.inside) == 13


def test_words_count_whole_and_of_their_class():
    log = [images("ball at night", draw(0.4)) + images("nightly ball", draw(0.8)) + images("cone at night", draw(0.1))]
    (found,) = check_statements(NIGHT, log)
    assert (len(found.inside), len(found.outside)) == (20, 20)


def test_a_statement_without_images_says_why():
    (found,) = check_statements(NIGHT, [images("ball by day", draw(0.8))])
    assert not found.holds
    assert found.p is None
    assert 'with "night"' in found.why


def test_the_same_activation_everywhere_is_no_effect():
    (found,) = check_statements(NIGHT, [images("ball at night", [0.5] * 9) + images("ball by day", [0.5] * 9)])
    assert found.effect == 0
    assert not found.holds


def test_statements_are_plain_json():
    found = check_statements(NIGHT, [images("ball at night", draw(0.4)) + images("ball by day", draw(0.8))])
    assert msgspec.json.decode(msgspec.json.encode(found), type=list[BiasStatement]) == found
