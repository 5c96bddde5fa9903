"""Events as the conversation that the backbone is shown."""

from __future__ import annotations

from dataclasses import replace

from workers.agent.conversation import MAX_ERROR_CHARS, messages, result_parts
from workers.protocols import ImagePart
from workers.record.events import (
    Ended,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    Graded,
    Reminder,
    Replied,
    Retrying,
    Started,
)
from workers.record.experiments import LogEntry, Observation
from workers.record.limits import Limits
from workers.record.systems import OrdinaryActivations, SystemSpec

STARTED = Started(
    "What?", "describe", SystemSpec("unit", "toybox", "layer4", 7), "test", Limits(), 0, "RULES", "YOUR TASK", "API"
)
RED = Observation("a red ball on grass", 38.412, "raw1", "masked1", "generated")
GREEN = Observation("make the ball green", 2.238, "raw2", "masked2", "edited", original="raw1")


def story(*payloads):
    kinds = {
        Started: "started",
        Replied: "reply",
        ExperimentStarted: "experiment",
        ExperimentEnded: "result",
        Reminder: "reminder",
        Graded: "graded",
        Retrying: "retrying",
        Ended: "concluded",
    }
    return [Event(seq, kinds[type(payload)], payload) for seq, payload in enumerate(payloads, 1)]


def result(*entries, number=3, status="ok", **more):
    return ExperimentEnded(1, number, status, entries, **more)


def result_text(told):
    """What the agent is told of an experiment, without the images."""
    return "\n".join(part for part in result_parts(told) if isinstance(part, str))


WHOLE_IMAGE = story(
    STARTED,
    Replied(1, "test", "I begin.", "I begin.", code="x"),
    ExperimentStarted(1, 1, "x"),
    Retrying(1, 1, "the disk is full"),
    result(LogEntry((RED,)), number=1),
    Reminder(1, "continue", "GO ON"),
    Reminder(1, "final_answer", "THE END"),
    Retrying(2, 1, "no answer"),
    Replied(2, "test", "", ""),
    Reminder(2, "format", "THE FORM"),
    Replied(3, "test", "[LABEL]: red", ""),
    Ended(),
)


def test_a_result_is_told_in_the_form_that_agents_rely_on():
    told = result(LogEntry((RED, GREEN), "colour matters"), output="mean 20.3\n", exemplar_mean=28.9)
    assert result_text(told) == (
        "Experiment 3: ok\n"
        "1. a red ball on grass — activation 38.41\n"
        "2. make the ball green — activation 2.24 (edited from 1)\n"
        "Notes: colour matters\n"
        "Edits, each against its own original:\n"
        "- make the ball green: n=1, change -36.17 (from 38.41 to 2.24)\n"
        "What ordinary images of the dataset get is not known.\n"
        "Mean exemplar activation: 28.90\n"
        "Output:\n"
        "mean 20.3"
    )


def test_each_image_follows_its_line_masked_where_it_can_be():
    bare = Observation("bare", -0.5, "raw3")
    parts = result_parts(result(LogEntry((RED, bare))))
    assert parts == (
        "Experiment 3: ok\n1. a red ball on grass — activation 38.41",
        ImagePart("masked1", "1. a red ball on grass — activation 38.41"),
        "2. bare — activation -0.50",
        ImagePart("raw3", "2. bare — activation -0.50"),
        "Activations by title:\n- all images: n=2, mean 18.96, sd 27.51",
    )


def test_a_plain_image_is_shown_where_the_plain_one_was_logged():
    both = LogEntry((replace(RED, plain=True), RED))
    shown = [part.key for part in result_parts(result(both)) if isinstance(part, ImagePart)]
    assert shown == ["raw1", "masked1"]


def test_what_was_logged_wrongly_is_told_with_both_numbers():
    wrong = replace(GREEN, activation=0.2, claimed=7.1, measured=True, differs=True)
    right = replace(RED, claimed=38.41, measured=True)
    assert "Image 2 was logged with 7.10; the system returns 0.20 for it" in result_text(
        result(LogEntry((right,)), LogEntry((wrong,)))
    )
    many = result_text(result(LogEntry((wrong,) * 8)))
    assert many.count("was logged with") == 5
    assert "So it is with 3 more." in many
    assert "was logged with" not in result_text(result(LogEntry((right,))))


def test_means_are_counted_by_title_each_image_once_beside_what_ordinary_images_get():
    titles = ["exemplar 1", "exemplar 2", "exemplar 2", "a red ball", "a red ball #2", "alone"]
    keys = ["a", "b", "b", "c", "d", "e"]
    entry = LogEntry(tuple(Observation(t, float(n), k) for n, (t, k) in enumerate(zip(titles, keys, strict=True))))
    told = result(
        entry, exemplar_mean=28.9, ordinary=OrdinaryActivations(512, 0.0123, 1.5, 4.0), best=4.0, measured=5, rounds=25
    )
    assert result_text(told).splitlines()[6:] == [
        "Activations by title:",
        "- exemplar: n=2, mean 1.00, sd 1.41",
        "- a red ball: n=2, mean 3.50, sd 0.707",
        "- all images: n=5, mean 2.80, sd 1.92",
        "Ordinary images of the dataset (n=512): median 0.0123, 0.9 quantile 1.50, 0.99 quantile 4.00",
        "Mean exemplar activation: 28.90",
        "Best activation measured in this run, exemplars aside: 4.00, 24.90 below that mean",
        "This was round 1 of 25: 24 are left.",
    ]


def edit(words, activation, key, original, title=""):
    return Observation(title or words, activation, key, origin="edited", prompt=words, original=original)


def test_an_original_of_several_edits_is_listed_and_shown_once():
    blue = edit("make it blue", 3.0, "raw3", "raw1")
    again = replace(RED, title="the ball")
    parts = result_parts(result(LogEntry((RED, GREEN, RED, blue)), LogEntry((RED, again))))
    assert "\n".join(part for part in parts if isinstance(part, str)).splitlines()[1:5] == [
        "1. a red ball on grass — activation 38.41",
        "2. make the ball green — activation 2.24 (edited from 1)",
        "4. make it blue — activation 3.00 (edited from 1)",
        "6. the ball — activation 38.41 (the same image as 1)",
    ]
    assert [part.key for part in parts if isinstance(part, ImagePart)] == ["masked1", "masked2", "raw3"]


def test_edits_are_compared_in_pairs_and_never_pooled_by_title():
    originals = [Observation(f"scene {n}", 10.0 * n, f"original{n}") for n in (1, 2, 3)]
    nights = [edit("make it night", 10.0 * n - n, f"night{n}", f"original{n}", f"night {n}") for n in (1, 2, 3)]
    cat = edit("add a cat", 10.5, "cat", "original1")
    told = result_text(result(LogEntry((*originals, *nights, cat)), LogEntry((nights[0],)))).splitlines()
    assert told[told.index("Edits, each against its own original:") :] == [
        "Edits, each against its own original:",
        "- make it night: n=3, mean change -2.00, sd 1.00 (from 20.00 to 18.00)",
        "- add a cat: n=1, change +0.50 (from 10.00 to 10.50)",
        "Activations by title:",
        "- scene: n=3, mean 20.00, sd 10.00",
    ]


def test_an_edit_is_compared_with_an_original_of_an_earlier_experiment():
    first, second = result(LogEntry((RED,)), number=1), result(LogEntry((GREEN,)), number=2)
    told = messages(story(STARTED, first, second))[-1].text
    assert "- make the ball green: n=1, change -36.17 (from 38.41 to 2.24)" in told
    alone = result_text(result(LogEntry((GREEN, edit("make the ball green", 3.0, "raw4", "raw3")))))
    assert "- make the ball green: 2 not compared, since the original was never logged" in alone


def test_every_title_of_several_images_has_its_mean():
    titles = [f"{name} thing" for name in "abcdefghijklmnopqrstuvwxyz"]
    entry = LogEntry(tuple(Observation(t, 1.0, f"{t} {n}") for t in titles for n in range(2)))
    told = result_text(result(entry))
    assert all(f"- {title}: n=2, mean 1.00" in told for title in titles)


def test_where_nobody_knows_what_ordinary_images_get_it_says_so():
    told = result_text(result(LogEntry((RED,)), exemplar_mean=28.9))
    assert "What ordinary images of the dataset get is not known.\nMean exemplar" in told
    assert "not known" not in result_text(result(LogEntry((RED,))))


def test_ordinary_images_come_with_a_result_and_count_as_none_of_its_images():
    ordinary = Observation("ordinary image near the 0.5 quantile", 1.25, "raw7", "masked7", measured=True)
    parts = result_parts(result(LogEntry((RED,)), ordinary_images=(ordinary,), output="words"))
    line = "ordinary image near the 0.5 quantile — activation 1.25"
    assert parts[2].endswith(f"(your program did not log them):\n{line}")
    assert parts[3:] == (ImagePart("masked7", line), "Output:\nwords")
    assert "all images" not in result_text(result(LogEntry((RED,)), ordinary_images=(ordinary,)))


def test_numbers_run_on_through_the_entries_of_an_experiment():
    text = result_text(result(LogEntry((RED,), "first"), LogEntry((), "words"), LogEntry((GREEN,))))
    assert text == (
        "Experiment 3: ok\n1. a red ball on grass — activation 38.41\nNotes: first\nNotes: words\n"
        "2. make the ball green — activation 2.24 (edited from 1)\n"
        "Edits, each against its own original:\n- make the ball green: n=1, change -36.17 (from 38.41 to 2.24)"
    )


def test_an_edit_of_an_image_that_this_experiment_did_not_log_names_no_source():
    assert "edited from" not in result_text(result(LogEntry((GREEN,))))
    itself = Observation("again", 1.0, "raw1", original="raw1")
    assert "edited from" not in result_text(result(LogEntry((itself,))))


def test_a_title_cannot_pass_for_another_line():
    title = "a ball\n2. a cone — activation 99.00\nOutput:"
    text = result_text(result(LogEntry((Observation(title, 1.0, "raw"),))))
    assert text.splitlines()[1:] == ["1. a ball 2. a cone — activation 99.00 Output: — activation 1.00"]


def test_an_error_comes_with_its_traceback_and_with_what_was_logged_before_it():
    told = result(
        LogEntry((RED,)), status="program_error", error="Traceback:\n  line 3\nKeyError: 'x'", output="so far"
    )
    assert result_text(told) == (
        "Experiment 3: program error\nTraceback:\n  line 3\nKeyError: 'x'\n"
        "Correct the program and send it again.\n"
        "1. a red ball on grass — activation 38.41\nOutput:\nso far"
    )


def test_every_status_is_told_in_words_to_act_on():
    first_lines = {
        status: result_text(result(status=status, error="why")).splitlines()
        for status in ("program_error", "tool_error", "timeout", "memory", "killed")
    }
    heads = [lines[0] for lines in first_lines.values()]
    assert heads == [
        f"Experiment 3: {w}" for w in ("program error", "tool error", "timeout", "out of memory", "killed")
    ]
    assert all(lines[1] == "why" and lines[2].endswith(".") for lines in first_lines.values())


def test_an_experiment_that_shows_nothing_says_how_to_log():
    assert "Nothing was logged and nothing was printed" in result_text(result())
    assert "tools.log_experiment(" in result_text(result())
    assert "Nothing was" not in result_text(result(output="x"))
    assert "Nothing was" not in result_text(result(LogEntry((), "x")))
    assert "Nothing was" not in result_text(result(status="timeout"))


def test_output_that_was_cut_says_so():
    assert result_text(result(output="aaa", output_truncated=True)).endswith(
        "aaa\n[The output was cut here. Print less.]"
    )


def test_a_long_error_keeps_its_first_and_last_lines():
    text = result_text(result(status="program_error", error="Traceback\n" + "x" * 50_000 + "\nKeyError: 'y'"))
    assert len(text) < MAX_ERROR_CHARS + 200
    assert "Traceback" in text
    assert "KeyError: 'y'" in text
    assert "left out" in text


def test_roles_alternate_and_trouble_with_the_machinery_stays_out():
    told = messages(WHOLE_IMAGE)
    assert [message.role for message in told] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    words = "\n".join(message.text for message in told)
    assert "disk" not in words
    assert "no answer" not in words
    assert told[0].text == "RULES"
    assert told[1].text == "YOUR TASK"


def test_a_result_and_the_notes_behind_it_are_one_turn():
    turn = messages(WHOLE_IMAGE)[3]
    assert [type(part) for part in turn.parts] == [str, ImagePart, str, str]
    assert turn.parts[2:] == ("GO ON", "THE END")


def test_an_empty_reply_still_has_words():
    assert messages(WHOLE_IMAGE)[4].text == "(an empty reply)"


def test_what_a_backbone_was_shown_never_changes_afterwards():
    whole = messages(WHOLE_IMAGE)
    asked = [place for place, event in enumerate(WHOLE_IMAGE) if event.kind == "reply"]
    for place in asked:
        shown = messages(WHOLE_IMAGE[:place])
        assert shown == whole[: len(shown)]


def test_the_history_only_grows_with_every_event():
    for length in range(1, len(WHOLE_IMAGE)):
        shorter, longer = messages(WHOLE_IMAGE[:length]), messages(WHOLE_IMAGE[: length + 1])
        assert shorter[:-1] == longer[: len(shorter) - 1]
        last, then = shorter[-1], longer[len(shorter) - 1]
        assert last.role == then.role
        assert then.parts[: len(last.parts)] == last.parts


def test_a_failed_label_comes_with_its_figures_and_images_in_the_usual_form():
    needed = {"generated_auc": 0.9, "pearson": 0.801}
    figures = {"pearson": 0.78, "generated_auc": 0.95, "described": 0.5, "reachable": 0.89, "needed": needed}
    grade = Graded(3, "red balls", **figures, left=1, images=(RED,), direction="too narrow", reading="Read as: balls.")
    (told,) = [each for each in messages(story(STARTED, grade)) if "red balls" in each.text]
    assert "failed: red balls" in told.text
    assert "describes: 0.50\n" in told.text
    assert "neutral ones: 0.95, needs 0.90\n" in told.text
    assert "natural images: 0.78, needs 0.80 (0.89 is reachable): too low\n" in told.text
    assert "Too narrow" in told.text
    assert "Read as: balls.\n" in told.text
    assert "tested 1 more time." in told.text
    assert "1. a red ball on grass — activation 38.4" in told.text
    assert [each.key for each in told.parts if isinstance(each, ImagePart)] == ["masked1"]
    assert "second cause" in told.text


def test_the_last_failed_label_says_that_it_was_the_last() -> None:
    (*_, told) = messages(story(STARTED, Graded(3, "red balls", generated_auc=0.5)))
    assert "This was the last time" in told.text
    assert "0 more" not in told.text
    assert "images that tell most" not in told.text


def test_a_label_whose_words_cannot_be_tested_comes_with_the_reason_and_the_remedy() -> None:
    grade = Graded(3, "odd things", reason="Toybox does not understand it.", direction="not readable", left=2)
    (*_, told) = messages(story(STARTED, grade))
    assert "could not be tested: odd things\nToybox does not understand it.\n" in told.text
    assert "keep it and say so" in told.text
    assert "tested 2 more times." in told.text


def test_of_a_label_that_passed_the_agent_is_told_nothing():
    passed, untested = Graded(3, "red balls", passed=True), Graded(3, "red balls", reason="No generator.")
    assert messages(story(STARTED, passed, untested)) == messages(story(STARTED))
