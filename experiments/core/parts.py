"""List toolsets and backbones: those of the registry, and those of plug-ins, which are known here only as rows.

Pages never import a plug-in: a worker that loaded it writes its rows.
"""

from __future__ import annotations

from experiments.models import Backbone, Toolset
from workers import registry


def list_toolsets() -> dict[str, str]:
    """Return key -> display name; plug-ins only while a worker can use them."""
    return {key: each.label for key, each in registry.TOOLSETS.items()} | _list_rows(Toolset, registry.TOOLSETS)


def list_backbones() -> dict[str, str]:
    """Return key -> display name; plug-ins only while a worker can use them."""
    return dict(registry.choices(registry.BACKBONES)) | _list_rows(Backbone, registry.BACKBONES)


def label_toolset(key: str) -> str:
    """Return the display name of a toolset; the key itself if it is unknown."""
    return registry.TOOLSETS[key].label if key in registry.TOOLSETS else _find_label(Toolset, key)


def label_backbone(key: str) -> str:
    """Return the display name of a backbone; the key itself if it is unknown."""
    return registry.BACKBONES[key][0] if key in registry.BACKBONES else _find_label(Backbone, key)


def _list_rows(kind: type[Toolset | Backbone], known: object) -> dict[str, str]:
    assert isinstance(known, dict)
    rows = kind._default_manager.filter(available=True).exclude(key__in=known)
    return {row.key: row.label or row.key for row in rows}


def _find_label(kind: type[Toolset | Backbone], key: str) -> str:
    row = kind._default_manager.filter(key=key).first()
    return row.label if row and row.label else key
