"""What images of a program may cost the worker: pixels of a call, scans of a JPEG, bytes stored."""

from __future__ import annotations

import struct
from io import BytesIO

import pytest
from PIL import Image

from tests.support.exemplar_index import index_of
from tests.support.hostile_images import as_text, many_scans, solid_png
from tests.support.tiny_lab import TinyContext, square
from workers.errors import BrokenImage, Cancelled, ToolMisuse
from workers.lab import decoding, imaging, program_api
from workers.lab.image_headers import MAX_SCANS, count_scans
from workers.lab.memory import ImagesInMemory, StorageBudget, look_up
from workers.protocols import Bounds, Provenance
from workers.record.origins import Origin
from workers.sandbox.program import program_style

BOUNDS = Bounds(seconds=20)


@pytest.fixture
def context(tmp_path):
    return TinyContext(index_of(tmp_path))


def run(sandbox, context, program, bounds=BOUNDS, **facts):
    calls = program_api.list_calls(context.system, context.tools, program_style(program))
    facts = {f"system.{name}": value for name, value in facts.items()}
    return sandbox.run(program, calls, program_api.list_facts(context.system) | facts, bounds=bounds)


# --- pixels of a call -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "system.neuron([system.image] * 5)",
        "system.neuron(['data:' + 'x' * 999 + ',' + system.image] * 5)",
        "tools.describe_images(image_list=[system.image] * 5)",
        "tools.edit_images([system.image] * 5, ['make it red'] * 5)",
        "tools.display([[system.image], [system.image] * 4])",
        "tools.log_experiment([1] * 5, [system.image] * 5, ['a'] * 5, '')",
        "system.neuron([system.image] * 3 + [Image.new('L', (4096, 4096)), Image.new('L', (1, 1))])",
    ],
)
def test_the_pixels_of_a_call_are_bounded_by_their_sum(sandbox, context, call):
    result = run(sandbox, context, call, image=as_text(solid_png()))
    assert result.status == "tool_error"
    assert "67,108,864 pixels at most" in result.error
    assert "call several times" in result.error
    assert context.memory.recall(imaging.image_key(Image.new("RGB", (1024, 1024)))) is None  # none was decoded


def test_texts_that_are_no_images_have_no_pixels(sandbox, context):
    bounds = Bounds(seconds=20, call_pixels=100)
    words = "tools.display('aGVsbG8=' * 99, 'iVBORw0KGgo=', 'data:', [{'a': 'words'}], 'x' * 9999)"
    assert run(sandbox, context, words, bounds).status == "ok"
    one = "tools.display({'a': [system.image]})"
    assert "121 pixels" in run(sandbox, context, one, bounds, image=as_text(solid_png(11))).error


def test_the_largest_call_is_taken_and_its_images_are_reduced(sandbox, context):
    program = "print(sum(system.neuron([system.image] * 3 + [Image.new('RGB', (4096, 4096))])[0]))"
    assert run(sandbox, context, program, image=as_text(solid_png())).output == "0.0\n"
    stored = context.memory.load(imaging.image_key(Image.new("RGB", (1024, 1024))))
    assert stored.size == (1024, 1024)


def test_an_image_that_is_known_keeps_its_size():
    memory, large = ImagesInMemory(), Image.new("RGB", (1500, 100), "red")
    key = memory.remember(large, Provenance(Origin.GENERATED, "red", 1))
    found = look_up(memory, large, "image")
    assert (found.key, found.image.size, found.provenance.prompt) == (key, (1500, 100), "red")


# --- scans of a JPEG --------------------------------------------------------------------------------


def test_a_jpeg_of_very_many_scans_is_refused(sandbox, context):
    data = many_scans(2000, 64)
    result = run(sandbox, context, "system.neuron([system.image])", image=as_text(data))
    assert result.status == "tool_error"
    assert "over 100 scans" in result.error
    assert "PNG" in result.error
    with pytest.raises(ToolMisuse, match="over 100 scans"):  # what a bundle brings is decoded by the same function
        imaging.decode_image(data)
    with pytest.raises(BrokenImage, match="over 100 scans"):
        decoding.decode_file(BytesIO(data))


def test_a_progressive_jpeg_is_taken():
    file = BytesIO()
    Image.effect_noise((200, 200), 90).convert("RGB").save(file, "JPEG", progressive=True)
    assert imaging.decode_image(file.getvalue()).size == (200, 200)
    assert imaging.decode_image(many_scans(99, 64)).size == (64, 64)


def test_only_what_a_decoder_reads_counts_as_scans():
    markers = b"\xff\xda" * 500
    inside = b"\xff\xe1" + struct.pack(">H", len(markers) + 2) + markers
    data = many_scans(20, 64)
    assert count_scans(data[:2] + inside + data[2:] + markers) == 21  # a thumbnail before it, a film after it
    assert count_scans(data[:-2] + many_scans(200, 64)[2:]) > MAX_SCANS


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF"])
def test_programs_send_png_jpeg_or_webp(kind):
    file = BytesIO()
    square("red").save(file, kind)
    with pytest.raises(ToolMisuse, match="PNG, JPEG or WebP"):
        imaging.decode_image(file.getvalue())


def test_a_call_is_stopped_between_two_images(sandbox, tmp_path):
    read = []

    def stop(what, done, total):
        read.append((what, done, total))
        if done == 2:
            raise Cancelled("stopped")

    context = TinyContext(index_of(tmp_path), progress=stop)
    images = "[Image.new('RGB', (9, 9), (n, 0, 0)) for n in range(6)]"
    calls = [f"system.neuron({images})", f"tools.describe_images({images})", f"tools.display(*{images})"]
    for call in [*calls, f"tools.edit_images({images}, ['make it red'] * 6)"]:
        read.clear()
        with pytest.raises(Cancelled):
            run(sandbox, context, call)
        assert [done for _, done, _ in read] == [0, 1, 2], call
    assert context.system.measured == {}


# --- bytes stored -----------------------------------------------------------------------------------

NOISE = """
import os
for _ in range(9):
    system.neuron([Image.frombytes('RGB', (100, 100), os.urandom(30_000))])
    print('measured')
"""


def test_the_images_that_an_experiment_stores_are_bounded(sandbox, context):
    context.memory.budget = StorageBudget(experiment=1 << 20, run=1 << 30)
    program = NOISE.replace("range(9)", "range(99)")
    result = run(sandbox, context, program)
    assert result.status == "tool_error"
    assert "one experiment stores 1 MiB at most" in result.error
    assert "next one" in result.error
    assert result.output.count("measured") in range(10, 40)
    assert context.memory.budget.spent <= 1 << 20
    context.memory.budget = StorageBudget(experiment=1 << 20, run=1 << 30)
    assert run(sandbox, context, NOISE).status == "ok"


def test_the_images_that_a_run_stores_are_bounded(sandbox, context):
    context.memory.budget = StorageBudget(experiment=1 << 30, run=1 << 20, spent_before=(1 << 20) - 90_000)
    result = run(sandbox, context, NOISE)
    assert result.status == "tool_error"
    assert "one run stores 1 MiB at most" in result.error
    assert "conclude" in result.error


def test_an_image_that_is_stored_already_costs_nothing(sandbox, context):
    context.memory.budget = StorageBudget(experiment=1000, run=1000)
    program = "for _ in range(99): system.neuron([Image.new('RGB', (9, 9), 'blue')])"
    assert run(sandbox, context, program).status == "ok"
    assert context.memory.budget.spent == 9 * 9 * 3 + 2 * 2 * 3  # its map has four cells


def test_hundreds_of_images_in_each_of_thirty_rounds_are_within_the_bounds():
    budget, image = StorageBudget(), Image.new("RGB", (224, 224))
    for _ in range(30):
        budget = StorageBudget(spent_before=budget.spent_before + budget.spent)
        for _ in range(2 * 800):  # each with its masked image
            budget.spend(image)
