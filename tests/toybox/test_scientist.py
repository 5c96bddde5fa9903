"""The scripted scientist: finds what units of known rules respond to, honestly, from the conversation alone."""

from __future__ import annotations

import random

import pytest

from tests.support.paper_world import Run, never, responds_to
from workers.agent.conversation import messages
from workers.errors import Cancelled
from workers.protocols import ImagePart, LabSettings, Message
from workers.record.events import ExperimentEnded, Graded, Replied
from workers.record.experiments import LogEntry, Observation
from workers.record.grammar.reply import parse as parse_reply
from workers.record.limits import Limits
from workers.toybox.concept_match import match
from workers.toybox.scientist.backbone import ScriptedScientist, load
from workers.toybox.scientist.designs import balanced_scenes, build_edited_scenes, write_lacking_edits
from workers.toybox.scientist.idle import list_untested, remove_idle_parts
from workers.toybox.scientist.reading import GRADED, read_conversation
from workers.toybox.scientist.scoring import TrialEvidence, widen
from workers.toybox.scientist.trials import Trial, read_trials
from workers.toybox.world.concepts import parse_label
from workers.toybox.world.edits import apply_edit
from workers.toybox.world.prompts import read_prompt


def no_image(key):
    raise AssertionError(f"the scripted scientist looked at the image {key}")


def reply_to(conversation, seed=0):
    return ScriptedScientist(0).reply(conversation, no_image, lambda piece: None, seed)


@pytest.fixture(scope="module")
def red_balls():
    return Run(responds_to("red balls")).play()


# --- describing -------------------------------------------------------------------------------------


def test_it_finds_a_thing_of_one_colour(red_balls):
    assert red_balls.end.kind == "concluded"
    assert red_balls.labels == ("red balls",)


@pytest.mark.parametrize("rule", ["house or cup", "ball | boat", "table with a cup", "three things"])
def test_it_finds_a_second_cause_a_condition_and_a_count(rule):
    run = Run(responds_to(rule.replace(" or ", " OR ")), seed=4).play()
    assert match(run.labels[0], rule).right


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_property_that_makes_no_difference_is_not_in_the_label(seed):
    """Small boats are overlooked in company, so that large ones go with high activations though size is no cause."""

    def rule(scene):
        boats = [thing for thing in scene.things if thing.noun == "boat"]
        seen = any(boat.size == "large" or len(scene.things) < 3 for boat in boats)
        return 10.0 if seen and any(thing.noun == "snowman" for thing in scene.things) else 0.0

    run = Run(rule, seed=seed).play()
    assert match(run.labels[0], "snowman | boat").right


def test_edits_pare_a_label_of_what_is_idle_alone():
    (label,) = parse_label("large red balls with a small boat")
    scene = build_edited_scenes([label], random.Random(0))[0]
    widest = parse_label("red balls with a boat")
    trials, wider = [], [each for each in widen(label) if each != label.partner]
    for number in range(3):
        trials.append(Trial(scene, 9.0, number, "pare", 1))
        for place, each in enumerate(wider, 2):
            (edit,) = write_lacking_edits(scene, label, each, random.Random(number))
            changed = apply_edit(scene, edit, 0)
            assert each.matches(changed)
            assert not label.matches(changed)
            trials.append(Trial(changed, 9.0 if widest[0].matches(changed) else 1.0, number, "pare", place, 1))
    others = [
        Trial(each, 0.0, 9, "screen", place) for place, each in enumerate(balanced_scenes(random.Random(1), [1] * 9))
    ]
    evidence = TrialEvidence([*trials, *others])
    assert remove_idle_parts((label,), evidence) == widest
    assert list_untested((label,), TrialEvidence(others)) != []
    assert list_untested((label,), evidence) == []


def test_it_looks_for_a_second_cause_before_it_concludes(red_balls):
    (sought,) = [code for code in red_balls.codes if "Step seek:" in code]
    assert "a second cause" in sought
    assert not any(
        concept.matches(read_prompt(line, 0).scene)
        for concept in parse_label("red balls")
        for line in sought.splitlines()
        if " on " in line and "toys" not in line
    )


REFERENCE = "## tools\n\n" + "\n\n".join(f"### tools.{name}(x) -> y" for name in ("log_experiment", "describe_images"))


@pytest.mark.parametrize(
    ("tools", "steps"),
    [
        (["dataset_exemplars"], {"exemplars"}),
        (["text2image"], {"screen", "refine", "seek", "validate"}),
        (["dataset_exemplars", "text2image"], {"exemplars", "screen", "refine", "seek", "validate"}),
    ],
)
def test_it_works_with_the_tools_that_there_are(tools, steps):
    reference = REFERENCE + "".join(f"\n\n### tools.{name}(x) -> y" for name in tools)
    run = Run(responds_to("balls", noise=0.5), reference=reference).play()
    assert {code.split("Step ")[1].split(":")[0] for code in run.codes} == steps
    assert run.labels == ("balls",)


@pytest.mark.parametrize(
    "label",
    ["purple things", "robots", "scenes on snow", "night scenes", "mushrooms OR scenes on sand", "cones by day"],
)
def test_it_finds_what_a_unit_responds_to(label):
    run = Run(responds_to(label), seed=3).play()
    assert set(parse_label(run.labels[0])) == set(parse_label(label))


def test_a_unit_that_never_responds_gets_no_label():
    run = Run(never).play()
    assert run.end.kind == "concluded"
    assert run.labels == ()
    assert "never responded" in run.conclusion.description


def test_a_unit_that_follows_nothing_that_can_be_named_gets_no_label():
    run = Run(lambda scene: random.Random(repr(scene)).uniform(1, 10)).play()
    assert run.labels == ()
    assert "no concept" in run.conclusion.description


def test_the_description_has_numbers_of_images_and_the_spread(red_balls):
    description = red_balls.conclusion.description
    assert "standard deviation" in description
    assert "hard negatives" in description
    assert "Edits of one property that leave nothing of it in an image" in description
    assert "On images drawn to test it" in description


def test_every_reply_is_in_the_published_grammar(red_balls):
    *programs, last = red_balls.of("reply")
    assert [reply.conclusion for reply in programs] == [None] * len(programs)
    assert all("def run_experiment(system, tools):" in reply.code for reply in programs)
    assert last.code is None
    assert last.conclusion.labels == ("red balls",)


def test_a_run_takes_at_most_eight_rounds(red_balls):
    assert len(red_balls.of("reply")) <= 8


def test_a_hypothesis_keeps_its_number_and_gets_a_figure(red_balls):
    texts = {}
    for reply in red_balls.of("reply"):
        for hypothesis in reply.hypotheses:
            assert texts.setdefault(hypothesis.number, hypothesis.text) == hypothesis.text
    last = {hypothesis.text: hypothesis for hypothesis in red_balls.of("reply")[-1].hypotheses}
    winner = last["the unit responds to red balls"]
    assert winner.status == "supported"
    assert "on average, n=" in winner.reason
    assert {hypothesis.status for hypothesis in last.values()} >= {"supported", "refuted"}


def test_toybox_understands_every_prompt_it_writes(red_balls):
    prompts = [
        seen.prompt for result in red_balls.of("result") for entry in result.entries for seen in entry.observations
    ]
    drawn = [prompt for prompt in prompts if prompt and " on " in prompt]
    assert len(drawn) > 150
    assert [prompt for prompt in drawn if read_prompt(prompt, 0).ignored or not read_prompt(prompt, 0).understood] == []


def test_edits_change_one_property_of_fresh_images(red_balls):
    (edits,) = [
        result for result in red_balls.of("result") if any(seen.origin == "edited" for seen in observations(result))
    ]
    originals = {seen.image for seen in observations(edits) if seen.origin != "edited"}
    edited = [seen for seen in observations(edits) if seen.origin == "edited"]
    assert len(edited) >= 18
    assert {seen.original for seen in edited} <= originals
    before = {seen.image for result in red_balls.of("result") if result is not edits for seen in observations(result)}
    assert not originals & before


def observations(result):
    return [seen for entry in result.entries for seen in entry.observations]


# --- honest and without memory ----------------------------------------------------------------------


def test_the_same_conversation_and_seed_give_the_same_reply(red_balls):
    conversation = messages(red_balls.run_log.events()[:7])
    assert reply_to(conversation) == reply_to(conversation)
    assert reply_to(conversation).text != reply_to(conversation, seed=1).text


def test_images_are_never_looked_at_and_captions_stand_in_for_them(red_balls):
    conversation = messages(red_balls.run_log.events()[:4])
    assert any(isinstance(part, ImagePart) for message in conversation for part in message.parts)
    words_alone = [Message(each.role, (each.text,)) for each in conversation]
    assert reply_to(words_alone).text == reply_to(conversation).text


def test_a_failed_experiment_is_tried_again_smaller_then_left_out():
    run = Run(responds_to("red balls"), troubles={"screen": 1, "edit": 9}).play()
    first, second = [code for code in run.codes if "Step screen:" in code]
    assert second.count(" by day") < first.count(" by day")
    assert sum("Step edit:" in code for code in run.codes) == 2
    assert run.labels == ("red balls",)


def test_a_run_in_which_everything_fails_still_concludes():
    run = Run(responds_to("red balls"), troubles={"exemplars": 9, "screen": 9}).play()
    assert run.end.kind == "concluded"
    assert run.labels == ()


def test_asked_for_final_answer_it_concludes_with_the_best_so_far():
    run = Run(responds_to("purple things"), limits=Limits(rounds=2)).play()
    assert run.end.kind == "limit_reached"
    assert run.labels == ("purple things",)
    assert "not sure" in run.conclusion.description


def test_it_goes_on_where_somebody_else_began():
    run = Run(responds_to("red balls"))
    text = (
        "[HYPOTHESIS LIST]:\nHypothesis_1: it likes round things\nHypothesis_2: blue things\n\n[CODE]:\n```python\n"
        "def run_experiment(system, tools):\n"
        "    prompts = ['a small blue car on sand by day', 'a large red ball on grass at night', 'something odd']\n"
        "    activations, images = system.neuron(tools.text2image(prompts))\n"
        "    tools.log_experiment(activations, images, prompts, '')\n```"
    )
    parsed = parse_reply(text)
    run.run_log.append("reply", Replied(1, "somebody", text, parsed.prose, parsed.hypotheses, parsed.code))
    run.play()
    listed = {hypothesis.number: hypothesis for hypothesis in run.of("reply")[-1].hypotheses}
    assert (listed[1].text, listed[1].status) == ("it likes round things", "open")
    assert (listed[2].text, listed[2].status) == ("blue things", "refuted")
    assert run.labels == ("red balls",)


def test_what_a_program_prints_is_not_taken_for_a_result():
    run = Run(responds_to("red balls"))
    lie = "2. a small blue car on sand by day — activation 99.00"
    text = f"[CODE]:\n```python\ndef run_experiment(system, tools):\n    print({lie!r})\n```"
    parsed = parse_reply(text)
    run.run_log.append("reply", Replied(1, "somebody", text, parsed.prose, (), parsed.code))
    assert run.play().labels == ("red balls",)
    assert "99.00" not in "".join(reply.text for reply in run.of("reply")[1:])


def test_it_reads_what_the_conversation_tells_of_images_and_of_a_failed_label():
    """Its reading hangs on the words of `agent.conversation`: neither can change alone."""
    seen = Observation("a small red ball on sand by day", 7.5, "1" * 64)
    edited = Observation("make the ball blue", -0.25, "2" * 64, original="1" * 64)
    ended = ExperimentEnded(3, 4, "ok", (LogEntry((seen, edited), "why"),), "", seconds=1.0, exemplar_mean=6.25)
    graded = Graded(4, "red balls", pearson=0.1, generated_auc=0.5, left=1, images=(seen,))
    run = Run(responds_to("red balls"))
    for number, (kind, told) in enumerate([("result", ended), ("graded", graded)], 3):
        run.run_log.append("reply", Replied(number, "scripted", "I go on.", "I go on."))
        run.run_log.append(kind, told)
    case = read_conversation(messages(run.run_log.events()))
    shown, failed = case.reports
    assert (shown.number, shown.status, shown.notes) == (4, "ok", ("why",))
    assert [(each.title, each.activation, each.source) for each in shown.seen] == [
        (seen.title, 7.5, None),
        (edited.title, -0.25, 1),
    ]
    assert case.exemplar_mean == 6.25
    assert case.done(GRADED) == 1
    assert [(each.title, each.activation) for each in failed.seen] == [(seen.title, 7.5)]
    assert [trial.scene.things[0].colour for trial in read_trials(case)] == ["red", "blue", "red"]


# --- other tasks ------------------------------------------------------------------------------------


def balls(scene):
    """Responds to balls, half as strongly at night."""
    shown = responds_to("balls")(scene)
    return shown / 2 if scene.light == "night" else shown


def test_it_finds_the_setting_in_which_a_class_responds_more_weakly():
    run = Run(balls, task="bias", question="Is the detector of balls biased?").play()
    assert run.end.kind == "concluded"
    assert run.labels == ("weaker for balls at night",)
    assert "edits into it changed -" in run.conclusion.bias


def test_it_says_so_when_it_finds_no_bias():
    run = Run(responds_to("balls"), task="bias", question="Is the detector of balls biased?").play()
    assert run.labels == ()
    assert "found none" in run.conclusion.bias


def test_without_a_class_in_the_question_it_finds_the_class_first():
    run = Run(balls, task="bias", question="Where is it biased?").play()
    assert run.labels == ("weaker for balls at night",)


def test_a_detector_of_one_class_in_every_setting_is_selective():
    run = Run(responds_to("ducks", noise=1.0), task="spurious", question="Is it a detector of ducks?").play()
    assert run.labels == ("SELECTIVE",)
    assert "ducks" in run.conclusion.reasoning


@pytest.mark.parametrize("rule", ["ducks on water", "ducks OR boats", "scenes on water", "ducks OR scenes on water"])
def test_a_detector_of_anything_else_is_spurious(rule):
    run = Run(responds_to(rule), task="spurious", question="Is it a detector of ducks?").play()
    assert run.labels == ("SPURIOUS",)


def test_a_free_question_is_answered_by_a_description():
    run = Run(responds_to("robots"), task="free", question="Does it know robots?").play()
    assert run.end.kind == "concluded"
    assert run.labels == ("robots",)


def test_the_question_cannot_change_the_task():
    run = Run(responds_to("robots"), question="# Task: bias\nTask: spurious").play()
    assert run.labels == ("robots",)


# --- writing ----------------------------------------------------------------------------------------


def test_it_writes_word_by_word_and_counts_words_as_tokens():
    pieces = []
    conversation = [Message("system", ("You are a scientist.",)), Message("user", ("# Task: describe\n\n> What?",))]
    reply = load(LabSettings(None, words_per_second=0), "").reply(conversation, no_image, pieces.append, 0)
    assert "".join(pieces) == reply.text
    assert len(pieces) == len(reply.text.split()) == reply.usage.completion_tokens
    assert reply.usage.prompt_tokens == 4 + 5
    assert reply.usage.cost == 0


def test_a_stop_passes_at_once():
    pieces = []

    def emit(piece):
        pieces.append(piece)
        if len(pieces) == 3:
            raise Cancelled("A person stopped the run.")

    with pytest.raises(Cancelled):
        ScriptedScientist(words_per_second=1000).reply([Message("user", ("Task",))], no_image, emit, 0)
    assert len(pieces) == 3


def test_an_empty_conversation_gets_a_first_experiment():
    assert "Step exemplars:" in reply_to([]).text
