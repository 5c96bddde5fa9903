"""The tools: every style, where each image came from, seeds, and every misuse."""

import pytest
from PIL import Image

from tests.support.exemplar_index import index_of
from tests.support.tiny_lab import DEAD, GREEN, RED, TinyContext, square, to_base64
from workers.errors import Cancelled, ToolMisuse, ToolRefused
from workers.lab import program_api
from workers.lab.image_tools import derive_seed
from workers.lab.imaging import decode_image_base64, image_key
from workers.lab.memory import ImagesInMemory
from workers.lab.tools import Tools
from workers.record.experiments import LogEntry


@pytest.fixture
def context(tmp_path):
    return TinyContext(index_of(tmp_path))


@pytest.fixture
def tools(context):
    return context.tools


def key_of(image):
    return image_key(decode_image_base64(image) if isinstance(image, str) else image)


def logged(context):
    return [seen for entry in context.tools.entries for seen in entry.observations]


# --- exemplars ------------------------------------------------------------------------------------------


def test_it_gives_the_exemplars_best_first_with_masked_images(tmp_path):
    context = TinyContext(index_of(tmp_path, mask_quantile=0.9))
    activations, masked = context.tools.dataset_exemplars(context.system)
    assert activations == pytest.approx([1.0, 1.0, 0.2])
    raw = [context.memory.recall(key_of(each)).raw for each in masked]
    assert raw == [image_key(square("red", 3)), image_key(square("red", 0)), image_key(square("grey", 1))]
    assert context.memory.recall(raw[0]).origin == "exemplar"
    assert context.tools.dataset_exemplars() == (activations, masked)


def test_it_says_in_words_that_a_unit_never_activates(tmp_path):
    context = TinyContext(index_of(tmp_path), DEAD)
    assert context.tools.entries == []
    assert context.tools.dataset_exemplars(context.system) == ([], [])
    context.tools.dataset_exemplars(context.system)
    (entry,) = context.tools.entries
    assert entry.text.count("No image of the dataset activates this unit") == 1
    assert context.tools.exemplar_mean is None


def test_its_threshold_is_the_mean_of_the_exemplars_and_its_best_the_highest_that_was_measured(context):
    tools = context.tools
    assert tools.exemplar_mean == pytest.approx(2.2 / 3)
    tools.dataset_exemplars()
    assert (tools.best, tools.measured) == (None, 3)
    context.system.neuron([square("grey", 2)])
    tools.log_experiment([0.7], [square("blue")], ["b"])
    assert (tools.best, tools.measured) == (pytest.approx(0.2), 5)


def test_it_knows_what_ordinary_images_get(context):
    ordinary = context.tools.ordinary
    assert (ordinary.images, ordinary.median) == (6, pytest.approx(0.1))
    assert ordinary.q90 == pytest.approx(1.0)
    assert context.tools.measured == 0


# --- drawing and editing --------------------------------------------------------------------------------


def test_it_draws_one_image_for_each_prompt_and_remembers_prompt_seed_and_scene(context):
    images = context.tools.text2image(["a red square", "a green square"])
    seeds = [derive_seed(0, words, 0) for words in ("a red square", "a green square")]
    assert [key_of(each) for each in images] == [
        key_of(square("red", seeds[0] % 4)),
        key_of(square("green", seeds[1] % 4)),
    ]
    known = context.memory.recall(key_of(images[0]))
    assert (known.origin, known.prompt, known.seed) == ("generated", "a red square", seeds[0])
    assert known.scene["colour"] == "red"
    assert context.tools.text2image("a red square")[0].size == (8, 8)


def test_it_gives_repeats_of_a_prompt_other_seeds_and_the_same_run_the_same_seeds(tmp_path):
    first, again, other = (TinyContext(index_of(tmp_path), seed=seed) for seed in (1, 1, 2))
    for context in (first, again, other):
        context.tools.text2image(["red", "red"])
        context.tools.text2image(["green", "red"])
    assert len({seed for _, seed in first.generator.asked}) == 4
    assert first.generator.asked == again.generator.asked
    assert not set(first.generator.asked) & set(other.generator.asked)
    assert all(0 <= seed < 2**31 for _, seed in first.generator.asked)


def test_it_draws_nothing_again_that_an_earlier_experiment_logged(tmp_path):
    memory = ImagesInMemory()
    first = TinyContext(index_of(tmp_path), memory=memory)
    first.tools.log_experiment([1.0], first.tools.text2image(["red"]), ["red"])
    second = TinyContext(index_of(tmp_path), memory=memory, earlier=first.tools.entries)
    second.tools.text2image(["red"])
    assert second.generator.asked == [("red", derive_seed(0, "red", 1))]


def test_it_draws_the_originals_itself_and_returns_originals_and_edits_interleaved(context):
    images, titles = context.tools.edit_images(["a red one", "a blue one"], ["make it green", "make it grey"])
    assert titles == ["a red one", "make it green", "a blue one", "make it grey"]
    known = [context.memory.recall(key_of(image)) for image in images]
    assert [each.origin for each in known] == ["original", "edited", "original", "edited"]
    assert [each.scene["colour"] for each in known] == ["red", "green", "blue", "grey"]
    assert known[0].scene["corner"] == known[1].scene["corner"]
    assert known[1].original == key_of(images[0])
    assert known[1].seed == known[0].seed == context.editor.seeds[0]
    assert known[1].prompt == "make it green"


def test_it_edits_given_images_of_every_kind(context):
    drawn = context.tools.text2image(["red"])[0]
    exemplars = context.tools.dataset_exemplars()[1]
    _, masked = context.system.neuron([drawn])
    given = [drawn, to_base64(drawn), masked[0], exemplars[2], "blue"]
    images, titles = context.tools.edit_images(given, ["make it green"] * 5)
    assert titles[::2] == ["red", "red", "red", "original image", "blue"]
    assert [key_of(each) for each in images[:6:2]] == [key_of(drawn)] * 3
    assert key_of(images[6]) == key_of(square("grey", 1))
    assert [context.memory.recall(key_of(each)).scene["colour"] for each in images[1::2]] == ["green"] * 5


def test_it_never_takes_a_word_for_an_image(context):
    images, _ = context.tools.edit_images(["bird"], ["make it red"])
    assert context.memory.recall(key_of(images[0])).prompt == "bird"
    context.tools.display("bird")
    assert context.tools.entries[0] == LogEntry((), "bird")


@pytest.mark.parametrize(
    ("shown", "titles", "words"),
    [
        (["before", 0], ["before"], [""]),
        (["before", 0, "other", 1], ["before", "other"], [""]),
        (["before", 0, "after"], ["after"], ["before", ""]),
        (["before", 0, "between", 1, "after"], ["between", "after"], ["before", "", ""]),
    ],
)
def test_no_word_beside_an_image_is_lost(context, shown, titles, words):
    images = context.tools.text2image(["red", "blue"])
    context.tools.display(*(images[each] if isinstance(each, int) else each for each in shown))
    entries = context.tools.entries
    assert [seen.title for entry in entries for seen in entry.observations] == titles
    assert [entry.text for entry in entries] == words


def test_it_says_that_an_edit_needs_the_scene_behind_the_image(tools):
    with pytest.raises(ToolRefused, match="scene behind this image is unknown"):
        tools.edit_images([Image.new("RGB", (8, 8), "white")], ["make it red"])


def test_it_passes_on_what_generator_and_editor_remark(tools):
    tools.text2image(["a quux", "a red one", "a quux"])
    tools.edit_images(["a red one"], ["make it red"])
    remarks = tools.entries[-1]
    assert remarks.observations == ()
    assert remarks.text.splitlines() == [
        "The edit 'make it red' changed nothing in its image.",
        "'a quux': understood no colour.",
    ]


def test_what_is_to_be_said_of_an_image_stands_beside_it(context):
    images = context.tools.text2image(["a quux", "a red one"])
    activations, masked = context.system.neuron(images)
    context.tools.log_experiment(activations, masked, ["first", "second"])
    (entry,) = context.tools.entries
    assert [seen.title for seen in entry.observations] == ["first (understood no colour.)", "second"]


def test_a_repeated_prompt_is_one_original_in_a_call(context):
    images, _ = context.tools.edit_images(["red", "blue", "red"], ["make it green", "make it grey", "make it black"])
    assert key_of(images[0]) == key_of(images[4])
    assert [prompt for prompt, _ in context.generator.asked] == ["red", "blue"]


def test_it_bounds_its_remarks(tools):
    tools.text2image([f"{number} {'quux ' * 300}" for number in range(60)])
    lines = tools.entries[-1].text.splitlines()
    assert len(lines) == 20
    assert max(map(len, lines)) < 450


def test_it_lets_a_refusal_and_a_cancellation_through(context):
    with pytest.raises(ToolRefused, match="forbidden"):
        context.tools.text2image(["a forbidden thing"])

    def stop(what, done, total):
        raise Cancelled("A person stopped the run.")

    context.tools._image_tools._progress = stop
    with pytest.raises(Cancelled):
        context.tools.text2image(["red"])


# --- words ----------------------------------------------------------------------------------------------


def test_it_describes_each_image_under_its_title_and_masked_images_as_masked(context):
    images = [square("red"), square("grey")]
    assert context.tools.describe_images(images, ["one", "two"]) == "one: bright\ntwo: dark"
    _, masked = TinyContext(context.subject._index, GREEN).system.neuron(images)
    assert context.tools.describe_images(masked, ["one", "two"]) == "one: bright\ntwo: dark", "plain: nothing is lit"
    assert context.tools.describe(images) == "image 1: bright\nimage 2: dark"
    assert context.tools.summarize_images(images) == context.tools.summarize(images) == "1 of 2 are bright"


# --- styles -------------------------------------------------------------------------------------------


def test_its_table_serves_both_styles(context):
    function, script = (
        program_api.list_calls(context.system, context.tools, style) for style in ("function", "script")
    )
    assert set(function) == set(script)
    activations, images = function["tools.dataset_exemplars"]("system")
    assert script["tools.dataset_exemplars"]("system") == list(zip(activations, images, strict=True))
    assert script["tools.results_list"]() == []
    assert script["tools.experiment_log"]() == []


def test_its_table_serves_the_exemplars_of_a_dead_unit_in_both_styles(tmp_path):
    context = TinyContext(index_of(tmp_path), DEAD)
    assert program_api.list_calls(context.system, context.tools, "function")["tools.dataset_exemplars"]() == ([], [])
    assert program_api.list_calls(context.system, context.tools, "script")["tools.dataset_exemplars"]() == []


def test_its_table_serves_every_public_method_and_nothing_else(context):
    served = {name.partition(".")[2] for name in program_api.list_calls(context.system, context.tools, "function")}
    public = {name for name in vars(Tools) if not name.startswith("_")} - {
        *("entries", "best", "measured", "ordinary", "exemplar_mean")
    }
    assert served == public | {"neuron", "call_neuron", "ablate"}


def test_it_shows_the_attributes_of_the_system(context):
    assert program_api.list_facts(context.system) == {
        "system.model_name": "tiny",
        "system.layer": "patches",
        "system.neuron_num": RED,
        "system.unit": RED,
    }


def test_it_knows_the_names_of_scenes_and_single_edits(context):
    drawn = [tool(["a red ball"], seed=0)[0] for tool in (context.tools.text2model, context.tools.game_engine)]
    assert len({key_of(image) for (image,) in drawn}) == 1
    image = context.tools.text2image("red")[0]
    edit = context.tools.edit_image(image, "make it blue")
    assert context.memory.recall(key_of(edit)).original == key_of(image)
    edits = context.tools.edit_image(image, ["make it blue", "make it green"])
    assert [context.memory.recall(key_of(each)).scene["colour"] for each in edits] == ["blue", "green"]


# --- misuse ---------------------------------------------------------------------------------------------

IMAGE = square("red")
MISUSES = [
    ("text2image", (None,), "prompt_list must be a list of prompts, but is None"),
    ("text2image", ([],), "prompt_list is empty"),
    ("text2image", ([3],), r"prompt_list\[0\] must be text, but is of type int \(3\)"),
    ("text2image", ([IMAGE],), r"prompt_list\[0\] must be text, but is of type Image"),
    ("text2image", (["red", " "],), r"prompt_list\[1\] is empty"),
    ("text2image", (["x" * 2001],), r"prompt_list\[0\] has 2001 characters; at most 2000 are read"),
    ("text2image", (["red"] * 65,), "prompt_list holds 65 prompts; one call takes 64 at most"),
    ("edit_images", (["red"], ["make it blue"] * 2), "prompts_or_images has 1, instructions has 2"),
    ("edit_images", ([1], ["make it blue"]), r"prompts_or_images\[0\] must be an image, but is a int"),
    ("edit_images", ([""], ["make it blue"]), r"prompts_or_images\[0\] is empty"),
    ("edit_images", (["x" * 2001], ["make it blue"]), r"prompts_or_images\[0\] has 2001 characters"),
    ("edit_images", (["red"], [None]), r"instructions\[0\] must be text, but is None"),
    ("edit_images", (["red"], []), "instructions is empty"),
    ("describe_images", ([IMAGE], ["a", "b"]), "image_list has 1, image_title has 2"),
    ("describe_images", ([IMAGE], [1]), r"image_title\[0\] must be text"),
    ("describe_images", ([],), "image_list is empty"),
    ("summarize_images", (["bird"],), r"image_list\[0\] must be an image, but is the text 'bird'"),
    ("log_experiment", ([1.0], [IMAGE], ["a", "b"], ""), "activation_list has 1, image_list has 1, image_titles has 2"),
    ("log_experiment", ([1.0, 2.0], [IMAGE], ["a"], ""), "activation_list has 2"),
    ("log_experiment", ([], [], [], ""), "activation_list is empty"),
    ("log_experiment", ([True], [IMAGE], ["a"], ""), r"activation_list\[0\] must be a finite number.*bool \(True\)"),
    ("log_experiment", ([float("nan")], [IMAGE], ["a"], ""), r"finite number, but is of type float \(nan\)"),
    ("log_experiment", ([float("inf")], [IMAGE], ["a"], ""), r"finite number, but is of type float \(inf\)"),
    ("log_experiment", (["1.0"], [IMAGE], ["a"], ""), r"finite number, but is of type str \('1.0'\)"),
    ("log_experiment", ([None], [IMAGE], ["a"], ""), "finite number, but is None"),
    ("log_experiment", ([1.0], [IMAGE], [1], ""), r"image_titles\[0\] must be text"),
    ("log_experiment", ([1.0], [IMAGE], ["a"], 5), "image_textual_information must be text or a list of texts"),
    ("log_experiment", ([1.0], [IMAGE], ["a"], ["b", 5]), "image_textual_information must be text or a list of texts"),
    ("log_experiment", ([1.0], ["gone"], ["a"], ""), r"image_list\[0\] must be an image"),
    ("display", ([IMAGE] * 65,), "Over 64 images came; one call shows 64 at most"),
    ("display", ([[None, IMAGE]],), "the activation beside an image"),
    ("display", ([[float("nan"), IMAGE]],), "the activation beside an image"),
]


@pytest.mark.parametrize(("name", "args", "message"), MISUSES)
def test_it_says_what_is_wrong_with_an_argument(tools, name, args, message):
    with pytest.raises(ToolMisuse, match=message):
        getattr(tools, name)(*args)
    assert tools.entries == []


def test_it_bounds_how_many_images_one_experiment_logs(tools):
    for _ in range(4):
        tools.log_experiment([1.0] * 64, [IMAGE] * 64, ["a"] * 64)
    with pytest.raises(ToolMisuse, match="has logged 256 images and 1 more came"):
        tools.log_experiment([1.0], [IMAGE], ["a"])
