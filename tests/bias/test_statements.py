"""From a conclusion and a log to tested statements: what is read, which images count, what the numbers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest

from workers.bias.statements import BiasStatement, check_run, check_statements
from workers.record.bias_tests import BiasTest
from workers.record.events import ExperimentEnded, Replied
from workers.record.experiments import LogEntry, Observation
from workers.record.origins import Origin
from workers.record.replies import Conclusion
from workers.record.stated_biases import MAX_STATEMENTS, date_statements, find_stated, read_statements

NIGHT = 'Weaker for balls at night (titles with "ball" and "night"): 0.40 on average, n=20, against 0.80, n=20.'
SNOW = '- stronger for balls on snow (titles with "ball" and "snow")'


def images(title, activations, origin=Origin.GENERATED, **given):
    """Each of a prompt of its own, unless it is given."""
    return [
        Observation(f"{title} {at}", value, f"{title}{at}", origin=origin, measured=True, **given)
        for at, value in enumerate(activations)
    ]


def draw(mean, count=20, seed=0):
    return np.random.default_rng((seed, count)).normal(mean, 0.1, count).tolist()


def check(text, *experiments, after=None) -> list[BiasTest]:
    """`after` which experiment all of it was stated."""
    log, stated = dict(enumerate(experiments, 1)), []
    if after is not None:
        said = Replied(1, "agent", "", "", conclusion=Conclusion(bias=text))
        payloads = [ExperimentEnded(1, number, "ok") for number in range(1, after + 1)]
        stated = find_stated([*payloads, said])
    return [each.test for each in check_statements(text, log, stated)]


def test_statements_are_read_with_their_direction_and_words():
    found = read_statements(f"I found two.\n{NIGHT}\n{SNOW}\nWeaker in general, it seems.")
    assert [(each.direction, each.subject, each.context) for each in found] == [
        ("weaker", ("ball",), "night"),
        ("stronger", ("ball",), "snow"),
    ]
    assert found[0].text == NIGHT


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ('Weaker (titles with "dog" and "snow" but not "night"): 0.3', (("dog",), "snow", ("night",))),
        ('Weaker on snow ("dog", "snow", without "night" or "sunset")', (("dog",), "snow", ("night", "sunset"))),
        ('Weaker for dogs not on grass (titles with "dog" and "snow")', (("dog",), "snow", ())),
        ('Weaker for "dogs on snow"', ((), "dogs on snow", ())),
        ('Weaker ("dog" and "snow"): 0.3 against 0.8 on average without "snow"', (("dog",), "snow", ())),
    ],
)
def test_words_that_no_image_may_have_are_read(line, read):
    (found,) = read_statements(line)
    assert (found.subject, found.context, found.excluded) == read


def test_a_real_difference_holds_with_its_sets_effect_and_interval():
    log = {1: images("red ball at night", draw(0.4)) + images("red ball by day", draw(0.8, seed=1))}
    (found,) = check_statements(NIGHT, log)
    assert found.test.holds
    assert {each.title.split()[-2] for each in found.sides.inside} == {"night"}
    assert {each.title.split()[-2] for each in found.sides.outside} == {"day"}
    assert found.test.inside_mean == pytest.approx(np.mean([each.activation for each in found.sides.inside]))
    assert found.test.low < found.test.effect < found.test.high < 0
    assert found.test.p < 0.001


def test_the_other_way_round_it_does_not_hold():
    (found,) = check(NIGHT, images("red ball at night", draw(0.8)) + images("red ball by day", draw(0.4, seed=1)))
    assert found.effect > 0
    assert not found.holds


def test_images_of_one_prompt_are_one_case():
    few = images("ball at night", draw(0.4), prompt="a ball at night")
    few += images("ball by day", draw(0.8), prompt="a ball by day")
    (found,) = check(NIGHT, few)
    assert (found.inside, found.outside, found.p) == (1, 1, None)
    assert "fewer than two prompts" in found.why
    many = [
        each
        for at in range(9)
        for light, mean in (("at night", 0.4), ("by day", 0.8))
        for each in images(f"ball {light}", draw(mean, 3, at), prompt=f"a ball {light}, scene {at}")
    ]
    (found,) = check(NIGHT, many)
    assert (found.inside, found.outside) == (9, 9)
    assert found.inside_mean == pytest.approx(0.4, abs=0.05)
    assert found.holds


def test_new_images_are_one_family_of_all_that_was_stated_and_the_greatest_effect_is_first():
    log = {
        1: images("ball at sunset", draw(0.8)),
        2: images("red ball at night on grass", draw(0.4))
        + images("ball by day on snow", draw(0.83, seed=1))
        + images("ball by day on grass", draw(0.8, seed=2)),
    }
    said = [
        ExperimentEnded(1, 1, "ok", (LogEntry(tuple(log[1])),)),
        Replied(2, "agent", "", "", conclusion=Conclusion(bias=f'{SNOW}\n{NIGHT}\nWeaker for "red"')),
        ExperimentEnded(2, 2, "ok", (LogEntry(tuple(log[2])),)),
    ]
    found = [each.test for each in check_run(f"{SNOW}\n{NIGHT}", said)]
    assert [each.context for each in found] == ["night", "snow"]
    assert all(each.fresh and each.after == 1 for each in found)
    assert found[0].adjusted_p == pytest.approx(3 * found[0].p), "with what was stated, tested and not concluded"


def test_what_raised_a_suspicion_is_left_out_once_there_are_eight_new_prompts():
    first = images("ball at night", [0.0] * 10) + images("ball by day", [1.0] * 10)
    fresh = images("small ball at night", draw(0.5)) + images("small ball by day", draw(0.5, seed=1))
    (found,) = check(NIGHT, first, fresh, after=1)
    assert found.fresh
    assert found.inside == 20
    assert not found.holds
    (few,) = check(NIGHT, first, fresh[:3], after=1)
    assert not few.fresh
    assert few.inside == 13


def test_a_prompt_that_was_used_before_is_no_new_one():
    first = images("ball at night", draw(0.0)) + images("ball by day", draw(1.0))
    (found,) = check(NIGHT, first, first, after=1)
    assert not found.fresh
    (late,) = check(NIGHT, first, first)
    assert not late.fresh, "nobody knows when it was stated"


def test_on_old_images_p_is_corrected_for_the_contexts_that_titles_tell_apart():
    grounds = ("grass", "sand", "tiles", "snow")
    log = [
        each
        for at, ground in enumerate(grounds)
        for light, mean in (("at night", 0.72), ("by day", 0.8))
        for each in images(f"ball {light} on {ground}", draw(mean, 6, seed=at + 10 * (mean < 0.8)))
    ]
    (found,) = check(NIGHT, log)
    words = len(grounds) + 2 + 6  # the grounds, either light with its preposition, and the number of each title
    assert found.adjusted_p == pytest.approx(min(1, words * found.p))


@pytest.mark.more
@pytest.mark.parametrize("fresh", [True, False])
def test_noise_holds_in_at_most_one_run_in_twenty(fresh):
    """18 contexts of 10 prompts each, the two that look most extreme are stated."""
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        log = [noise(rng, 0), *([noise(rng, 10)] if fresh else [])]
        means = {at: np.mean([each.activation for each in log[0] if f"place{at} " in each.title]) for at in range(18)}
        lowest, highest = min(means, key=means.get), max(means, key=means.get)
        text = f'Weaker for "place{lowest}"\nStronger for "place{highest}"'
        held += any(each.holds for each in check(text, *log, after=1 if fresh else None))
    assert held <= 10, "with a chance of 0.05 each, more do in one of a hundred tries"


def noise(rng, start: int) -> list[Observation]:
    """Images whose prompts make a difference, and whose places make none; two of each prompt."""
    return [
        Observation(
            f"place{at} variant {n}", float(mean + rng.normal(0, 0.5)), "", origin=Origin.GENERATED, measured=True
        )
        for at in range(18)
        for n in range(start, start + 10)
        for mean in [rng.normal()]
        for _ in range(2)
    ]


SEEN: Mapping[tuple[str, str], Sequence[float]] = {
    ("white", "snow"): (0.46, 0.33, 0.99),
    ("white", "tiles"): (0.56, 0.72, 1.0),
    ("red", "snow"): (0.97, 0.95, 1.0),
    ("red", "tiles"): (0.98, 0.96, 1.0),
    ("red", "grass"): (0.99, 0.97, 1.0),
    ("white", "grass"): (0.97, 0.95, 1.0),
}
"""Mean activation of a toybox network that was made to find white pyramids badly on snow and tiles, by day, at sunset
and at night."""


def test_two_true_biases_beside_each_other_are_found():
    lines = "\n".join(
        f'Weaker for white pyramids on {ground} (titles with "pyramid", "white" and "{ground}" but not "night")'
        for ground in ("snow", "tiles")
    )
    log = [see(0), see(8)]
    found = check(lines, *log, after=1)
    assert [(each.holds, each.fresh) for each in found] == [(True, True)] * 2
    assert {each.context: each.outside for each in found} == {"snow": 16, "tiles": 16}, (
        "neither the other ground nor night"
    )


def see(start: int) -> list[Observation]:
    """Eight prompts of each kind of scene."""
    rng = np.random.default_rng(start)
    return [
        Observation(
            f"a {colour} pyramid on {ground} {light}, view {n}",
            float(rng.beta(20 * mean + 0.01, 20 * (1 - mean) + 0.01)),
            "",
            origin=Origin.GENERATED,
            measured=True,
        )
        for (colour, ground), means in SEEN.items()
        for light, mean in zip(("by day", "at sunset", "at night"), means, strict=True)
        for n in range(start, start + 8)
    ]


def test_images_of_another_statement_stay_where_too_few_would_remain():
    log = images("ball at night on snow", draw(0.4)) + images("ball by day on snow", draw(0.8))
    (night, _) = check(f'{NIGHT}\nStronger for "ball" in "snow"', log)
    assert (night.inside, night.outside) == (20, 20)


def test_neither_exemplars_nor_edits_nor_what_was_never_measured_count():
    kept = images("ball at night", draw(0.4, 8)) + images("ball by day", draw(0.8, 8), Origin.ORIGINAL)
    rest = images("ball at night", [9.0] * 5, Origin.EXEMPLAR) + images("ball at night", [9.0] * 5, Origin.EDITED)
    rest += [Observation("ball at night", 9.0, "k", origin=Origin.GENERATED)]
    (found,) = check(NIGHT, kept + rest)
    assert (found.inside, found.outside) == (8, 8)


def test_words_count_whole_and_of_their_class():
    log = images("ball at night", draw(0.4)) + images("nightly ball", draw(0.8)) + images("cone at night", draw(0.1))
    (found,) = check(NIGHT, log)
    assert (found.inside, found.outside) == (20, 20)


def test_a_statement_without_images_says_why():
    (found,) = check(NIGHT, images("ball by day", draw(0.8)))
    assert not found.holds
    assert found.p is None
    assert 'with "night"' in found.why


def test_the_same_activation_everywhere_is_no_effect():
    (found,) = check(NIGHT, images("ball at night", [0.5] * 9) + images("ball by day", [0.5] * 9))
    assert found.effect == 0
    assert not found.holds


def test_a_statement_that_is_made_twice_counts_once_and_from_the_first_time():
    said = [
        Replied(1, "agent", "", "", conclusion=Conclusion(bias=NIGHT)),
        ExperimentEnded(1, 1, "ok"),
        Replied(2, "agent", "", "", conclusion=Conclusion(bias=f"{NIGHT}\n{NIGHT}")),
    ]
    assert [each.after for each in find_stated(said)] == [0]
    assert [each.after for each in date_statements(f"{NIGHT}\n{NIGHT}", find_stated(said))] == [0]


def test_neither_thousands_of_lines_nor_numbers_that_are_none_do_harm():
    log = images("ball at night", [*draw(0.4), float("nan")]) + images("ball by day", draw(0.8))
    found = check("\n".join(f'{NIGHT} "word{n}"' for n in range(5_000)) + NIGHT, log)
    assert len(found) == MAX_STATEMENTS
    (night,) = check(NIGHT, log)
    assert (night.inside, night.holds) == (20, True)


def test_statements_are_plain_json():
    log = {1: images("ball at night", draw(0.4)) + images("ball by day", draw(0.8))}
    found = check_statements(NIGHT, log)
    assert msgspec.json.decode(msgspec.json.encode(found), type=list[BiasStatement]) == found
