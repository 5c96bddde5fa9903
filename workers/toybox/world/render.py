"""The renderer: scenes to pictures, and to masks that say which thing is seen at each pixel.

Panda3D draws the toys offscreen with its software pipe, their shadows in a second pass, both over a drawn backdrop.
The same scene and size give the same pixels in every thread and process. The engine is not thread-safe: one lock, held
per picture. Nothing is made before the first picture. Called by the image models, the dataset and the training.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from workers.toybox.world import stage
from workers.toybox.world.backdrops import backdrop_from
from workers.toybox.world.meshes import added_node, toy_node
from workers.toybox.world.scenes import Scene, View
from workers.toybox.world.viewing import find_eye, rotate

if TYPE_CHECKING:
    from panda3d.core import GraphicsOutput, NodePath

Rgb = tuple[float, float, float]

IMAGE_SIZE = 224
"""Width and height of toybox pictures, in pixels."""
LARGEST = 512
_FINER = 3
"""Toys are drawn this much larger, then averaged: the anti-aliasing."""


@dataclass(frozen=True)
class Lamps:
    """The light on the toys: RGB of each lamp, the way the main one shines (x, y, z), and how dark shadows are."""

    ambient: Rgb
    key: Rgb
    fill: Rgb
    shines: tuple[float, float, float]
    shadow: float


LAMPS: Mapping[str, Lamps] = {
    "day": Lamps((0.46, 0.47, 0.49), (0.54, 0.52, 0.48), (0.32, 0.33, 0.35), (0.55, 0.50, -1.0), 0.42),
    "sunset": Lamps((0.42, 0.40, 0.41), (0.56, 0.48, 0.38), (0.32, 0.29, 0.29), (-0.95, 0.45, -0.85), 0.46),
    "night": Lamps((0.36, 0.38, 0.43), (0.42, 0.43, 0.47), (0.26, 0.27, 0.31), (0.45, 0.55, -1.0), 0.45),
}

_COLOUR, _SHADE = 1, 2
"""Camera masks: the pass that shows the toys, and the one that shows their shadows."""

_lock = threading.Lock()


def render(scene: Scene, size: int = IMAGE_SIZE) -> Image.Image:
    """The picture of a scene: RGB, `size` by `size` pixels, at most `LARGEST`."""
    with _lock:
        return _renderer(size).picture(scene)


def render_masks(scene: Scene, size: int = IMAGE_SIZE, only: int | None = None) -> NDArray[np.uint8]:
    """Which thing is seen at each pixel: (size, size), 0 where none is, else its index in the scene plus 1.

    With `only`, the others are left out.
    """
    with _lock:
        return _renderer(size).masks(scene, only)


@cache
def _renderer(size: int) -> Renderer:
    """The one renderer for a size; kept, since the engine's buffers are."""
    if not 16 <= size <= LARGEST:
        raise ValueError(f"A toybox picture is 16 to {LARGEST} pixels wide, not {size}.")
    return Renderer(size)


class Renderer:
    """The engine's buffers for one picture size. Not thread-safe: use `render` and `render_masks`."""

    def __init__(self, size: int = IMAGE_SIZE) -> None:
        from panda3d.core import BitMask32, Material, NodePath

        self.size = size
        self._root = NodePath("root")
        self._things = self._root.attach_new_node("things")
        # Light falls on the vertex colours once; without a material the software pipe multiplies them in twice
        material = Material()
        material.set_ambient((1, 1, 1, 1))
        material.set_diffuse((1, 1, 1, 1))
        material.set_specular((0.5, 0.5, 0.5, 1))
        material.set_shininess(24)
        self._things.set_material(material)
        self._things.set_two_sided(True)  # the software pipe leaves pinholes between triangles
        self._shadows = self._root.attach_new_node("shadows")
        self._things.hide(BitMask32(_SHADE))
        self._shadows.hide(BitMask32(_COLOUR))
        self._lamps = {name: _lights(lamps) for name, lamps in LAMPS.items()}
        self._colour = _View(self._root, size * _FINER, BitMask32(_COLOUR), None)
        self._shade = _View(self._root, size, BitMask32(_SHADE), _flat_state((1, 1, 1)))
        self._ids = _View(self._root, size, BitMask32(_COLOUR), None, tagged=True)

    def picture(self, scene: Scene) -> Image.Image:
        """See `render`."""
        view = scene.view or View()
        ground: NDArray[Any] = backdrop_from(scene, self.size)
        if not scene.things:
            return _to_image(ground * view.light)
        from panda3d.core import LMatrix4f

        self._fill(scene)
        lamps = LAMPS[scene.light]
        self._things.clear_light()
        for lamp in self._lamps[scene.light]:
            lamp.set_h(-(view.camera % 360))
            self._things.set_light(lamp)
        x, y, z = *rotate(lamps.shines[0], lamps.shines[1], -view.camera), lamps.shines[2]
        self._shadows.set_mat(LMatrix4f(1, 0, 0, 0, 0, 1, 0, 0, -x / z, -y / z, 1e-3, 0, 0, 0, 0, 1))  # flat
        _draw(view, self._colour, self._shade)
        blurred = Image.fromarray(self._shade.reds()).filter(ImageFilter.GaussianBlur(self.size / 100))
        shadow = np.asarray(blurred, np.float32) / np.float32(255)
        toys = np.asarray(self._colour.picture().reduce(_FINER), np.float32) / 255
        shaded = ground * (1 - lamps.shadow * shadow[..., None])
        return _to_image((toys[..., :3] + shaded * (1 - toys[..., 3:])) * view.light)

    def masks(self, scene: Scene, only: int | None = None) -> NDArray[np.uint8]:
        """See `render_masks`."""
        self._fill(scene, only)
        self._things.clear_light()
        _draw(scene.view or View(), self._ids)
        return self._ids.reds().copy()

    def _fill(self, scene: Scene, only: int | None = None) -> None:
        """Put the things of a scene, or one of them, on the stage in place of the last ones."""
        for parent in (self._things, self._shadows):
            parent.node().remove_all_children()
            for index, thing in enumerate(scene.things):
                if only not in (None, index):
                    continue
                path = parent.attach_new_node("thing")
                path.set_tag("id", str(index + 1))
                path.set_pos(thing.x, thing.y, scene.foot(index))
                path.set_h(thing.turn)
                path.set_scale(scene.scale(index))
                added = scene.added.get(thing.noun)
                path.attach_new_node(added_node(added, thing.colour) if added else toy_node(thing.noun, thing.colour))


class _View:
    """A camera, and the buffer that it fills."""

    def __init__(self, root: NodePath, size: int, sees: Any, state: Any, *, tagged: bool = False) -> None:
        from panda3d.core import Camera, PerspectiveLens

        self.size = size
        self.buffer = _buffer(size)
        lens = PerspectiveLens()
        lens.set_film_size(stage.VIEW, stage.VIEW)
        lens.set_focal_length(stage.DISTANCE)
        camera = Camera("camera", lens)
        camera.set_camera_mask(sees)
        if state is not None:
            camera.set_initial_state(state)
        if tagged:
            camera.set_tag_state_key("id")
            for index in range(1, 9):
                camera.set_tag_state(str(index), _flat_state(((index + 0.5) / 255, 0, 0)))
        self._lens, self._path = lens, root.attach_new_node(camera)
        self.buffer.make_display_region().set_camera(self._path)

    def aim(self, view: View) -> None:
        """Put the camera where the view has it."""
        eye = find_eye(view)
        self._path.set_pos(eye.x, eye.y, eye.z)
        if view.is_unmoved:
            self._lens.set_near_far(5, 40)
            self._path.look_at(*stage.TARGET)
        else:
            self._lens.set_near_far(1.5, 90)
            self._path.set_hpr(0, -view.elevation, 0)

    def picture(self) -> Image.Image:
        """The last frame, colours times alpha: mode RGBa."""
        data = self.buffer.get_texture().get_ram_image()
        return Image.frombuffer("RGBa", (self.size, self.size), bytes(data), "raw", "BGRa", 0, -1)

    def reds(self) -> NDArray[np.uint8]:
        """The red channel of the last frame: (size, size)."""
        return np.asarray(self.picture())[..., 0]


@cache
def _engine() -> tuple[Any, Any]:
    """The engine and its offscreen software pipe."""
    from panda3d.core import GraphicsEngine, GraphicsPipeSelection, load_prc_file_data

    load_prc_file_data("", "audio-library-name null\nnotify-level-x11display fatal\nnotify-level-tinydisplay error")
    pipe = GraphicsPipeSelection.get_global_ptr().make_module_pipe("p3tinydisplay")
    return GraphicsEngine.get_global_ptr(), pipe


def _buffer(size: int) -> GraphicsOutput:
    from panda3d.core import FrameBufferProperties, GraphicsOutput, GraphicsPipe, Texture, WindowProperties

    engine, pipe = _engine()
    wanted = FrameBufferProperties()
    wanted.set_rgba_bits(8, 8, 8, 8)
    wanted.set_depth_bits(24)
    window = WindowProperties.size(size, size)
    buffer = engine.make_output(pipe, f"toybox-{size}", 0, wanted, window, GraphicsPipe.BF_refuse_window)
    buffer.set_clear_color((0, 0, 0, 0))
    buffer.add_render_texture(Texture(), GraphicsOutput.RTM_copy_ram)
    buffer.set_active(False)
    return buffer


def _draw(view: View, *cameras: _View) -> None:
    """Let the engine draw with these cameras once."""
    engine, _ = _engine()
    for each in cameras:
        each.aim(view)
        each.buffer.set_active(True)
    engine.render_frame()
    for each in cameras:
        each.buffer.set_active(False)


def _flat_state(rgb: Rgb) -> Any:
    """Draw in one plain colour, whatever the toy says."""
    from panda3d.core import (
        ColorAttrib,
        ColorScaleAttrib,
        LightAttrib,
        MaterialAttrib,
        RenderState,
        TextureAttrib,
    )

    return RenderState.make(
        ColorAttrib.make_flat((*rgb, 1)),
        ColorScaleAttrib.make_off(),
        LightAttrib.make_all_off(),
        MaterialAttrib.make_off(),
        TextureAttrib.make_all_off(),
        100,
    )


def _lights(lamps: Lamps) -> list[NodePath]:
    from panda3d.core import AmbientLight, DirectionalLight, NodePath

    ambient = AmbientLight("ambient")
    ambient.set_color((*lamps.ambient, 1))
    lights = [NodePath(ambient)]
    for rgb, way in ((lamps.key, lamps.shines), (lamps.fill, (-lamps.shines[0], 0.8, 0.0))):
        lamp = DirectionalLight("lamp")
        lamp.set_color((*rgb, 1))
        lamp.set_direction(way)
        lights.append(NodePath(lamp))
    return lights


# --- pixels -----------------------------------------------------------------------------------------


def _to_image(pixels: NDArray[Any]) -> Image.Image:
    return Image.fromarray(np.round(np.clip(pixels, 0, 1) * 255).astype(np.uint8))
