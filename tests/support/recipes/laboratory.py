"""A tool: images turned left to right. A model: the mean of each colour. A backbone: one that always says the same."""

from __future__ import annotations

from tests.support.recipes.recipe import Recipe

TOOL = Recipe(
    lines=(
        (
            "workers/lab/tools.py",
            "    def describe_images(",
            '''\
    def mirror_images(self, image_list: Sequence[ImageOrText]) -> list[Image.Image]:
        """Turn each image left to right: does the unit mind which way a thing looks?

        Example:
            mirrored = tools.mirror_images(images)
            print(len(mirrored))
        """
        return [ImageOps.mirror(kept.image) for kept in self._images(image_list)]

''',
        ),
        ("workers/lab/tools.py", "from PIL import Image\n", "from PIL import Image, ImageOps\n"),
        ("workers/lab/program_api.py", '        *("log_experiment", ', '        "mirror_images",\n'),
    ),
    test=(
        "tests/lab/test_mirror_images.py",
        '''
        """A program calls the tool in the sandbox, and the agent is told of it."""

        from tests.support.exemplar_index import index_of
        from tests.support.tiny_lab import TinyContext
        from workers.lab import program_api
        from workers.lab.reference import build_reference
        from workers.protocols import Bounds
        from workers.sandbox.host import ZygoteSandbox

        PROGRAM = """
        image = tools.text2image(["a red one"])[0]
        mirrored = tools.mirror_images([image])[0]
        print(mirrored.size, mirrored.tobytes() != image.tobytes())
        """


        def test_a_program_calls_it(tmp_path):
            context = TinyContext(index_of(tmp_path))
            calls = program_api.list_calls(context.system, context.tools, "script")
            with ZygoteSandbox() as sandbox:
                result = sandbox.run(PROGRAM, calls, program_api.list_facts(context.system), bounds=Bounds(seconds=20))
            assert (result.output, result.error) == ("(8, 8) True\\n", "")


        def test_the_reference_tells_of_it():
            assert "### tools.mirror_images(image_list: list[Image]) -> list[Image]" in build_reference()
        ''',
    ),
    accepted=(
        "tests/lab/test_reference.py::test_the_examples_of_the_reference_run",
        "tests/lab/test_tools.py::test_its_table_serves_every_public_method_and_nothing_else",
    ),
)

MODEL = Recipe(
    new={
        "workers/vision_models/colour_means.py": '''
            """The mean of each colour over the quarters of an image: the smallest model that there can be."""

            from __future__ import annotations

            from collections.abc import Mapping, Sequence

            import numpy as np
            import torch
            from PIL.Image import Image

            from workers.errors import UnknownName
            from workers.protocols import LabSettings, LayerInfo


            class ColourMeans:
                """See `protocols.VisionModel`. Without state, so that it needs no lock."""

                name, revision = "colour-means", "1"

                def layers(self) -> Sequence[LayerInfo]:
                    return [LayerInfo("quarters", "mean", "conv", 3)]

                def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
                    if unknown := set(layers) - {"quarters"}:
                        raise UnknownName(f"There is no layer {unknown}.")
                    pixels = np.stack([np.asarray(image.convert("RGB").resize((8, 8))) for image in images])
                    colours = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
                    return {"quarters": torch.nn.functional.avg_pool2d(colours, 4)}


            def load(settings: LabSettings) -> ColourMeans:
                del settings
                return ColourMeans()
            '''
    },
    lines=(
        (
            "workers/registry.py",
            "    PAPER_RESNET: (",
            '    "colour-means": ("The mean of each colour", "workers.vision_models.colour_means.load"),\n',
        ),
        (
            "workers/vision_models/README.md",
            "- `centre_crop.py`",
            "- `colour_means.py`: the mean of each colour\n",
        ),
    ),
    test=(
        "tests/vision_models/test_colour_means.py",
        '''
        """The form offers the model, and a program measures images with it."""

        from tests.support.tiny_lab import square
        from workers import registry
        from workers.jobs import catalogue
        from workers.lab.laboratory import Laboratory
        from workers.lab.memory import ImagesInMemory
        from workers.protocols import LabSettings
        from workers.record.systems import SystemSpec


        def test_it_is_offered(as_owner, laboratory, redis_url):
            catalogue.write_model("colour-means")
            page = as_owner.get("/query/").content.decode()
            assert "colour-means" in page
            assert "quarters" in page


        def test_it_answers(tmp_path, monkeypatch):
            tiny = {"tiny": ("Tiny", "tests.support.tiny_lab.load_pictures")}
            monkeypatch.setattr(registry, "DATASETS", registry.DATASETS | tiny)
            lab = Laboratory(LabSettings(tmp_path, dataset="tiny"))
            spec = SystemSpec("unit", "colour-means", "quarters", 0)
            context = lab.experiment_context(spec, ImagesInMemory(), 0, toolset="toybox")
            activations, masked = context.system.neuron([square("red"), square("blue")])
            assert activations == [1, 0]
            assert len(masked) == 2
        ''',
    ),
)

BACKBONE = Recipe(
    new={
        "workers/backbones/parrot.py": '''
            """Always the same reply: what a run costs that asks nobody."""

            from __future__ import annotations

            from collections.abc import Callable, Sequence

            from PIL.Image import Image

            from workers.protocols import Emit, LabSettings, Message, Reply

            WORDS = "[DESCRIPTION]: I did not look.\\n[LABEL]: none"


            class Parrot:
                """See `protocols.Backbone`."""

                label = "Parrot"
                sees = False
                price_known = True

                def reply(self, messages: Sequence[Message], load: Callable[[str], Image], emit: Emit, seed: int) -> Reply:
                    del messages, load, seed
                    emit(WORDS)
                    return Reply(WORDS)


            def load(settings: LabSettings, model: str) -> Parrot:
                del settings, model
                return Parrot()
            '''  # noqa: E501
    },
    lines=(
        (
            "workers/registry.py",
            '    "person": ("Manual (human)"',
            '    "parrot": ("Parrot", "workers.backbones.parrot.load"),\n',
        ),
        ("workers/backbones/README.md", "- `person.py`", "- `parrot.py`: one that always says the same\n"),
    ),
    test=(
        "tests/backbones/test_parrot.py",
        '''
        """The form offers it, and a run goes on with its replies."""

        import pytest

        from tests.support import tiny_run
        from workers.jobs import catalogue

        pytestmark = pytest.mark.django_db(transaction=True)


        def test_it_is_offered_and_writes_the_replies_of_a_run(as_owner, owner, settings, monkeypatch, tmp_path, redis_url):
            tiny_run.install(monkeypatch, settings, tmp_path)
            catalogue.write_model("tiny")
            catalogue.write_backbone("parrot")
            assert "Parrot" in as_owner.get("/query/").content.decode()
            run = tiny_run.play(tiny_run.tiny_run(owner, None, key="parrot"))
            assert run.status == "concluded"
            assert run.events.get(kind="reply").content.author == "Parrot"
            assert run.conclusion["description"] == "I did not look."
        ''',  # noqa: E501
    ),
)
