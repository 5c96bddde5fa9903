"""`tools.game_engine`: what a call draws, what stands with each image, and what is refused."""

import math
from hashlib import sha256

import pytest

from tests.support.exemplar_index import index_of
from tests.support.glb_files import make_cone
from tests.support.tiny_lab import TinyContext
from workers.errors import ToolMisuse, ToolRefused
from workers.lab.engine_arguments import build_requests
from workers.lab.imaging import image_key
from workers.lab.memory import ImagesInMemory
from workers.protocols import Provenance
from workers.record.engine_parameters import keep_known
from workers.record.origins import Origin
from workers.toybox.world.scenes import Scene


@pytest.fixture
def context(tmp_path):
    return TinyContext(index_of(tmp_path))


def observations(context):
    return [each for entry in context.tools.entries for each in entry.observations]


def test_prompts_alone_give_images_alone(context):
    images = context.tools.game_engine(["a red ball", "a blue cube"])
    assert [image.size for image in images] == [(224, 224)] * 2
    context.tools.display(images[0])
    (seen,) = observations(context)
    assert (seen.title, seen.prompt, seen.origin) == ("a red ball", "a red ball", Origin.GENERATED)
    assert seen.parameters == {"camera": 0.0, "elevation": 23.0, "distance": 14.0, "light": 1.0, "size": 1.0}


def test_lists_are_a_grid_whose_last_parameter_changes_fastest(context):
    images, titles = context.tools.game_engine(["a red ball", "a blue cube"], camera=[-40, 40], light=[0.5, 1.5])
    assert titles[:5] == [
        "a red ball, camera -40°, light 0.5",
        "a red ball, camera -40°, light 1.5",
        "a red ball, camera 40°, light 0.5",
        "a red ball, camera 40°, light 1.5",
        "a blue cube, camera -40°, light 0.5",
    ]
    context.tools.log_experiment([0.0] * 8, images, titles)
    seen = observations(context)
    assert [(each.parameters["camera"], each.parameters["light"]) for each in seen[:4]] == [
        (-40, 0.5),
        (-40, 1.5),
        (40, 0.5),
        (40, 1.5),
    ]
    assert len({each.seed for each in seen[:4]}) == 1
    assert len({each.image for each in seen}) == 8


def test_a_repeated_prompt_has_another_seed_and_a_given_seed_is_kept(context):
    images, _ = context.tools.game_engine(["a ball", "a ball"], light=1)
    assert image_key(images[0]) != image_key(images[1])
    (first, second), titles = context.tools.game_engine("a ball", seed=[7, 8])
    assert [context.memory.recall(image_key(each)).seed for each in (first, second)] == [7, 8]
    assert titles == ["a ball", "a ball"]


@pytest.mark.parametrize(
    ("camera", "expected"),
    [
        (40, [{"camera": 40}]),
        ((40, 10), [{"camera": 40, "elevation": 10}]),
        ([40, 10], [{"camera": 40}, {"camera": 10}]),
        ([(0, 10), "above"], [{"camera": 0, "elevation": 10}, {"camera": 0, "elevation": 90}]),
        ("left", [{"camera": -90, "elevation": 23}]),
    ],
)
def test_a_tuple_is_one_place_of_the_camera_and_a_list_several(camera, expected):
    assert [each.given for each in build_requests(["a ball"], {"camera": camera})] == expected


MISUSES = [
    ({"camera": (0, -10)}, "elevation must be a number from 5 to 90 .*, but is -10"),
    ({"camera": "behind"}, "camera must be degrees or one of front, right, back, left, above, but is 'behind'"),
    ({"camera": (1, 2, 3)}, "two numbers, but has 3 parts"),
    ({"camera": [[]]}, "two numbers, but has 0 parts"),
    ({"light": -1}, "light must be a number from 0.2 to 2 .*, but is -1"),
    ({"light": math.nan}, r"light must be a number .*, but is of type float \(nan\)"),
    ({"light": "bright"}, r"light must be a number .*'bright'"),
    ({"light": True}, "light must be a number .*bool"),
    ({"light": []}, "light is an empty list. Pass one value"),
    ({"light": [[1]]}, "light must be a number .*, but is of type list"),
    ({"size": 10**400}, "size must be a number from 0.25 to 2"),
    ({"distance": math.inf}, r"distance must be a number .*\(inf\)"),
    ({"count": 500}, "count must be a whole number from 1 to 6 .*, but is 500"),
    ({"count": 1.5}, "count must be a whole number .*, but is 1.5"),
    ({"pose": {}}, "pose must be a number .*, but is of type dict"),
    ({"seed": -1}, "seed must be a whole number from 0 to 2147483647, but is -1"),
    ({"seed": 0.5}, "but is 0.5"),
    ({"camera": list(range(100)), "pose": list(range(100))}, "camera holds 100 values; one call takes 64"),
    ({"camera": list(range(50)), "pose": list(range(20)), "light": [1] * 10}, r"10,000 images \(50 x 10 x 20\)"),
]


@pytest.mark.parametrize(("options", "message"), MISUSES)
def test_a_wrong_value_is_refused_by_name_with_its_bounds(context, options, message):
    with pytest.raises(ToolMisuse, match=message):
        context.tools.game_engine(["a ball"], **options)


def test_a_prompt_that_cannot_be_rendered_is_refused_beside_the_others(context):
    images, titles = context.tools.game_engine(["a ball", "a dog"], light=[1, 2])
    context.tools.log_experiment([0.0, 0.0, math.nan, math.nan], images, titles)
    assert [each.title for each in observations(context)] == ["a ball, light 1", "a ball, light 2"]
    assert "a dog, light 2 (refused: toybox cannot draw dog)" in context.tools.entries[0].text
    with pytest.raises(ToolRefused, match=r"toybox cannot draw dog.*Toybox knows these toys"):
        context.tools.game_engine(["a dog"])


def test_a_toy_of_a_file_is_logged_as_any_and_its_scene_names_the_file(tmp_path):
    toys = tmp_path / "toys"
    toys.mkdir()
    data = make_cone().write(toys / "traffic-cone.glb").read_bytes()
    context = TinyContext(index_of(tmp_path), game_models=str(toys))
    images, titles = context.tools.game_engine(["a red traffic cone on grass"], camera=[0, 45])
    context.tools.log_experiment([0.0, 1.0], images, titles)
    assert [each.title for each in observations(context)] == [
        "a red traffic cone on grass, camera 0°",
        "a red traffic cone on grass, camera 45°",
    ]
    assert observations(context)[1].parameters["camera"] == 45
    digest = sha256(data).hexdigest()[:12]
    for image in images:
        scene = context.memory.recall(image_key(image)).scene
        assert scene["added"] == {"traffic cone": {"file": "traffic-cone.glb", "sha256": digest}}
    with pytest.raises(
        ToolRefused, match=r"cannot draw dog.*tools.game_engine, and nothing else, also knows traffic cone"
    ):
        context.tools.game_engine(["a dog"])


def test_a_later_experiment_of_the_run_knows_the_parameters_too(context, tmp_path):
    (image,), _ = context.tools.game_engine(["a red ball"], light=1.5)
    later = TinyContext(index_of(tmp_path), memory=context.memory)
    later.tools.display(image)
    assert observations(later)[0].parameters["light"] == 1.5


def test_what_the_generator_drew_before_gets_the_parameters_of_the_engine(context):
    """At the usual view the pixels are the generator's: the point would be missing in a plot."""
    (image,), _ = context.tools.game_engine(["a red ball"], seed=3)
    made = context.memory.recall(image_key(image))
    plain = {name: made.scene[name] for name in ("things", "ground", "light", "backdrop")}
    known = ImagesInMemory()
    for scene, expected in ((plain, plain), (made.scene, made.scene), (plain, made.scene)):
        known.remember(image, Provenance(Origin.GENERATED, "a red ball", 3, scene))
        assert known.recall(image_key(image)).scene == expected
    edited = ImagesInMemory()
    edited.remember(image, Provenance(Origin.EDITED, "make it red", 3, plain))
    edited.remember(image, made)
    assert edited.recall(image_key(image)).origin == Origin.EDITED
    assert Scene.from_json(plain).things == Scene.from_json(made.scene).things


def test_records_from_elsewhere_keep_only_what_the_engine_can_do():
    given = {"camera": 40, "light": 1e300, "size": "large", "count": True, "unheard": 1.0}
    assert keep_known(given) == {"camera": 40.0}
