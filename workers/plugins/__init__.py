"""Plug-ins: files and packages that add models, datasets, tools and backbones without a change of the source."""

from workers.plugins.registrar import Registrar

__all__ = ["Registrar"]
