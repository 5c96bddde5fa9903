"""The wire: plain data and images come back unchanged, and no bytes do more harm than an error."""

import contextlib
import math
import struct

import msgspec
import numpy as np
import pytest
from msgspec.msgpack import Ext, encode
from PIL import Image

from workers.sandbox import saved_state, values, wire

LIMITS = wire.FrameLimits(frame_bytes=1 << 20, pixels=64 * 64)


def through(value, limits=LIMITS):
    """The value after a trip across the wire, as the answer to a call."""
    return read(wire.pack(wire.CallResult(value), limits), wire.HostMessage, limits).value


def read(frame, kind=wire.GuestMessage, limits=LIMITS):
    header, tail = wire.lengths(frame[: wire.PREFIX.size], limits)
    body = memoryview(frame)[wire.PREFIX.size :]
    assert len(body) == header + tail
    return wire.unpack(body, header, kind, limits)


def framed(value, tail=b""):
    header = value if isinstance(value, bytes) else encode(value)
    return wire.PREFIX.pack(len(header), len(tail)) + header + tail


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        2.5,
        math.inf,
        "é",
        "é" * 5000,
        b"\x00",
        b"\xff" * 5000,
        [],
        [1, [2, "x"]],
        (1, (2,)),
        {"a": {1: [None]}},
    ],
)
def test_it_brings_plain_data_back_unchanged(value):
    back = through(value)
    assert back == value
    assert type(back) is type(value)


def test_it_brings_nan_back():
    assert math.isnan(through(math.nan))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_it_brings_images_back_pixel_for_pixel(mode):
    image = Image.effect_noise((7, 5), 90).convert(mode)
    back = through([image, (image, "title")])
    assert back[0].mode == mode
    assert back[0].tobytes() == back[1][0].tobytes() == image.tobytes()


def test_it_converts_images_of_other_modes():
    assert through(Image.new("P", (2, 2))).mode == "RGB"
    assert through(Image.new("CMYK", (2, 2))).mode == "RGB"


def test_it_sends_numpy_numbers_as_numbers():
    back = through([np.float32(0.5), np.int64(3), np.bool_(True), np.arange(3), {np.int64(1): np.str_("x")}])
    assert back == [0.5, 3, True, [0, 1, 2], {1: "x"}]
    assert [type(item) for item in back[:3]] == [float, int, bool]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1, 2}, "type set"),
        (np.zeros((4, 4, 3), np.uint8), "Image.fromarray"),
        (object(), "type object"),
        ({(1, 2): 3}, "key of type tuple"),
        (10**30, "cannot travel"),
        ("\ud800", "cannot travel"),
    ],
)
def test_it_says_what_cannot_travel(value, words):
    with pytest.raises(values.SendError, match=words):
        through(value)


def test_it_refuses_a_list_that_holds_itself():
    knot: list[object] = []
    knot.append(knot)
    with pytest.raises(values.SendError, match="deeper"):
        through(knot)


@pytest.mark.parametrize(
    "value", ["x" * (2 << 20), Image.new("L", (65, 64)), Image.new("L", (0, 4)), list(range(10**6))]
)
def test_it_says_what_is_too_large_to_travel(value):
    with pytest.raises(values.TooLargeError):
        through(value)


@pytest.mark.parametrize(("header", "tail"), [(2**32 - 1, 0), (0, 2**32 - 1), (wire.HEADER_BYTES + 1, 0), (9, 1 << 20)])
def test_it_refuses_a_length_before_anything_is_allocated(header, tail):
    with pytest.raises(values.WireError, match="at most"):
        wire.lengths(wire.PREFIX.pack(header, tail), LIMITS)


def image_of(width, height, mode=2):
    return Ext(1, struct.pack(">BII", mode, width, height))


HOSTILE = {
    "nothing": b"",
    "garbage": b"\xc1\xff\x00garbage",
    "not a message": encode({"a": 1}),
    "an unknown tag": encode(["reboot"]),
    "a message for the other side": encode(["answer", 1]),
    "a field too few": encode(["call", "system.neuron", []]),
    "a field too many": encode(["ready", 1]),
    "a field of the wrong type": encode(["call", 7, [], {}]),
    "keywords that are no texts": encode(["call", "x", [], {1: 2}]),
    "an unknown status": encode(["finished", "wonderful", "", b""]),
    "an unknown kind of value": encode(["call", "x", [Ext(77, b"abc")], {}]),
    "an array, which only kept state may hold": encode(["call", "x", [Ext(5, encode(["|u1", [1]]))], {}]),
    "an image of 100,000 pixels a side": encode(["call", "x", [image_of(100_000, 100_000)], {}]),
    "an image without pixels": encode(["call", "x", [image_of(4, 4)], {}]),
    "an image of no size": encode(["call", "x", [image_of(0, 4)], {}]),
    "an image of no known mode": encode(["call", "x", [image_of(1, 1, mode=200)], {}]),
    "a text longer than the frame": encode(["call", "x", [Ext(2, struct.pack(">I", 2**32 - 1))], {}]),
    "lists nested 100,000 deep": b"\x94\xa4call\xa1x" + b"\x91" * 100_000 + b"\xc0\x80",
    "lists nested 100 deep": b"\x94\xa4call\xa1x" + b"\x91" * 100 + b"\xc0\x80",
    "a map that promises 4 billion entries": b"\x94\xa4call\xa1x\x90\xdf\xff\xff\xff\xff",
    "a key that cannot be one": b"\x94\xa4call\xa1x\x90\x81\x90\x90",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_refuses_hostile_bytes(name):
    with pytest.raises(values.WireError):
        read(framed(HOSTILE[name]))


def test_it_refuses_tuples_nested_without_end():
    value = b"\x90"
    for _ in range(200):
        value = encode(Ext(4, b"\x91" + value))
    with pytest.raises(values.WireError):
        read(framed(b"\x94\xa4call\xa1x\x91" + value + b"\x80"))


def test_it_refuses_bytes_that_nothing_refers_to():
    with pytest.raises(values.WireError, match="nothing refers"):
        read(framed(["ready"], tail=b"x" * 100))


def test_it_refuses_a_text_that_is_not_utf8():
    with pytest.raises(values.WireError):
        read(framed(["call", Ext(2, struct.pack(">I", 2)), [], {}], tail=b"\xff\xff"))


def test_it_reads_random_bytes_as_an_error_or_a_message():
    noise = np.random.default_rng(0)
    for _ in range(2000):
        frame = framed(noise.bytes(40), noise.bytes(8))
        with pytest.raises(values.WireError):
            read(frame)


def test_it_reads_damaged_frames_as_an_error_or_a_message():
    noise = np.random.default_rng(1)
    call = wire.CallRequest("tools.x", ["a" * 300, Image.new("RGB", (4, 4)), (1, 2)], {"k": 1.5})
    whole = wire.pack(call, LIMITS)
    for _ in range(2000):
        frame = bytearray(whole)
        frame[int(noise.integers(8, len(frame)))] = int(noise.integers(256))
        with contextlib.suppress(values.WireError):
            assert isinstance(read(bytes(frame)), msgspec.Struct)


def test_it_keeps_the_state_of_a_script():
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    state, left_out = saved_state.save_state(
        {
            "n": 1,
            "pair": (1, "x"),
            "array": array,
            "image": Image.new("RGB", (2, 2)),
            "_hidden": 1,
            "np": np,
            "f": print,
        },
        budget=10_000,
    )
    back, _ = saved_state.restore_state(state)
    assert left_out == []
    assert set(back) == {"n", "pair", "array", "image"}
    assert back["pair"] == (1, "x")
    assert back["array"].dtype == np.int16
    assert (back["array"] == array).all()
    back["array"][0, 0] = 7


def test_it_leaves_the_largest_out_of_a_full_state():
    state, left_out = saved_state.save_state({"small": 1, "large": b"x" * 5000}, budget=1000)
    assert left_out == ["too large to be kept for the next experiment: large"]
    assert saved_state.restore_state(state) == ({"small": 1}, {})


@pytest.mark.parametrize("state", [b"x", b"\x00\x00\x00\x01\x90", b"\xff" * 50, b"\x00" * 8])
def test_it_refuses_a_state_that_is_none(state):
    with pytest.raises(values.WireError, match="cannot be read"):
        saved_state.restore_state(state)
