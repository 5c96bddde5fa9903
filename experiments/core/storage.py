"""Store image files in a folder, in which each file is complete or absent."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django.core.files import File
from django.core.files.storage import FileSystemStorage


class WholeFileStorage(FileSystemStorage):
    """Write beside the target and rename, so that a killed worker leaves no partial image.

    Names are keys of the content: an existing name holds the same pixels and may be replaced.
    """

    def get_available_name(self, name: str, max_length: int | None = None) -> str:  # noqa: ARG002 Django's signature
        return name

    def _save(self, name: str, content: File[bytes]) -> str:
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as part:
            try:
                for chunk in content.chunks():
                    part.write(chunk)
                part.flush()
                Path(part.name).replace(target)
            # Also when the worker is being stopped.
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise
        return name
