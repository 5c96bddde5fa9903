"""Write a study as a folder of files for any web server or a disk: index.html, a page for each run, one style
sheet, and each image once. Addresses are relative, and there are no scripts.

All its text is untrusted. Templates escape it, and the policy of each page allows only style and images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

from django.conf import settings
from django.core.files.storage import default_storage
from django.template.loader import render_to_string
from django.utils.html import escape

from experiments.core.display_name import person
from experiments.core.system_names import SystemNameMasker
from experiments.core.thumbnails import SIZES
from experiments.display.answers import render_answer
from experiments.display.events import render_events
from experiments.exchange import run_html
from experiments.exchange.export_bundle import pixels
from experiments.exchange.redaction import redact
from experiments.exchange.safe_zip import CHUNK, ExchangeError
from experiments.models import Image, Run, Study
from experiments.studies import parts
from experiments.studies.lists import list_items
from workers.record.events import Audience

STYLES = (*run_html.STYLES, "sharing/page", "studies/page")
STYLE, ICON = "style.css", "icon.svg"
LOOK = """<meta name="color-scheme" content="light dark">
<link rel="icon" href="{icon}" type="image/svg+xml">
<link rel="stylesheet" href="{style}">"""
POLICY = (
    "default-src 'none'; style-src 'self' file:; img-src 'self' file:; form-action 'none'; base-uri 'none'; "
    "script-src 'none'"
)
"""For a page opened from a disk, some browsers count its neighbours as 'self', others only as file:."""
AT_ONCE = 20
"""Events, and parts, that are drawn together."""
Progress = Callable[[str, int, int], object]
"""Called with the step, how much of it is done, and of how much. It may raise to stop the work."""


class Sink(Protocol):
    """Where files are written."""

    def add(self, name: str, chunks: Iterable[bytes], *, deflated: bool = True) -> None: ...


@dataclass(frozen=True)
class FolderSink:
    """A folder on a disk that any user may read, such as a web server."""

    root: Path

    def add(self, name: str, chunks: Iterable[bytes], *, deflated: bool = True) -> None:
        # Part of the protocol, for archives; a folder does not compress.
        del deflated
        path = self.root / name
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
            # Set explicitly: our umask closes new files and folders to others.
            path.parent.chmod(0o755)
        with path.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
        path.chmod(0o644)


@dataclass
class FolderImages:
    """The images of pages, by key with their source files: the largest thumbnail that exists, else the whole image.
    Images missing from the store have ""."""

    files: dict[str, str] = field(default_factory=dict)

    def name(self, key: str) -> str:
        """Return the name of its file in the folder; "" if it is missing from the store."""
        if key not in self.files:
            # Largest first, without the smallest size, which is too coarse for a page.
            paths = [*(Image.thumbnail_of(key, size) for size in reversed(SIZES[1:])), Image.path_of(key)]
            self.files[key] = next((path for path in paths if default_storage.exists(path)), "")
        # Thumbnails are WebP and whole images PNG: the suffix is that of the source.
        return f"images/{key}{Path(self.files[key]).suffix}" if self.files[key] else ""


@dataclass(frozen=True)
class PageImages:
    """Images of a page at this depth below the top."""

    images: FolderImages
    top: str = ""

    def small(self, key: str) -> str:
        name = self.images.name(key)
        return f"{self.top}{name}" if name else ""

    # The folder has one file for each image, so there is no larger one to link to.
    def whole(self, key: str) -> str:
        del key
        return ""


def write_study(study: Study, sink: Sink, progress: Progress, *, show_names: bool = False, folder: str = "") -> None:
    """Write all files; `folder` ends in "/" or is empty. What is hidden from any person is left out."""
    # A masker without a viewer hides what is hidden from any person.
    images, names = FolderImages(), SystemNameMasker(None)
    items = list_items(study, names)
    keys = [each.run_id for each in items if each.run_id]
    total = len(keys) + 2
    progress("Drawing the study", 0, total)
    # 1. The pages. Drawing them collects in `images` the pictures that they use.
    sink.add(f"{folder}index.html", _encode(_draw_index(study, images, show_names=show_names)))
    for done, key in enumerate(keys, 1):
        progress(f"Run {key}", done, total)
        run = Run.objects.select_related("owner", "label_check").get(pk=key)
        sink.add(f"{folder}runs/{key}.html", _encode(_draw_run(study, run, images, show_names=show_names)))
    # 2. Style and icon.
    sink.add(f"{folder}{STYLE}", [_read_styles().encode()])
    sink.add(f"{folder}{ICON}", [(Path(settings.BASE_DIR) / "static" / ICON).read_bytes()])
    # 3. The images, last: only now are all of them known. Sorted, so that two exports have the same order.
    for image in sorted(images.files):
        progress("Images", total - 1, total)
        if name := images.name(image):
            # PNG and WebP are compressed already.
            sink.add(f"{folder}{name}", _read_image(images.files[image], image), deflated=False)


def _read_styles() -> str:
    """Return the one style sheet."""
    sources = Path(settings.BASE_DIR) / "static" / "css"
    return "\n".join((sources / f"{name}.css").read_text() for name in STYLES)


def _encode(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode() for piece in pieces)


def _read_image(path: str, key: str) -> Iterator[bytes]:
    """Yield the content of an image file. Raises ExchangeError if it is missing by now."""
    # The whole image is checked against its key, a hash, while it is read.
    if path == Image.path_of(key):
        yield from pixels(key)
        return
    try:
        file = default_storage.open(path)
    except FileNotFoundError:
        raise ExchangeError(f"A small version of image {key[:12]} has gone meanwhile: export again.") from None
    with file:
        while chunk := file.read(CHUNK):
            yield chunk


def _open_page(title: str, top: str) -> str:
    look = LOOK.format(style=f"{top}{STYLE}", icon=f"{top}{ICON}")
    return run_html.HEAD.format(title=escape(title), policy=escape(POLICY), look=look)


def _draw_index(study: Study, images: FolderImages, *, show_names: bool) -> Iterator[str]:
    """Draw the page of the study, with all its parts."""
    names, pictures = SystemNameMasker(None), PageImages(images)
    reader = parts.StudyReader(names, Audience.LINK, lambda run: f"runs/{run.pk}.html", pictures)
    yield _open_page(study.title, "")
    context = {
        "study": study,
        "author": person(study.owner) if show_names else "",
        "parts": parts.draw_parts(list_items(study, names), reader),
        "pictures": pictures,
        "names": names,
        "page": {"number": 1},
        "team": False,
    }
    yield render_to_string("studies/outside.html", context)
    yield run_html.CLOSE


def _draw_run(study: Study, run: Run, images: FolderImages, *, show_names: bool) -> Iterator[str]:
    """Draw a run with its whole transcript, piece by piece."""
    names, pictures = SystemNameMasker(None), PageImages(images, "../")
    yield _open_page(run.question[:120], "../")
    head = run_html.head(run) | {"names": names}
    # An empty `asked_by` leaves the line out.
    yield render_to_string("exchange/exports/head.html", head if show_names else head | {"asked_by": ""})
    back = escape(study.title)
    yield f'<p class="study-link">From the study <a href="../index.html">{back}</a></p>\n'
    yield render_answer(run, names, Audience.LINK, pictures)
    # In portions: a long transcript would not fit in memory at once.
    events = run.events.filter(seq__lte=run.last_seq).order_by("seq").iterator(AT_ONCE)
    while some := list(islice(events, AT_ONCE)):
        shown = redact(some, Audience.LINK, show_names=show_names)
        for _, html in render_events(run, shown, names, Audience.LINK, pictures):
            yield html
    yield run_html.CLOSE
