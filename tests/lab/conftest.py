"""A laboratory of tiny plug-ins."""

import pytest

from workers import registry
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings


@pytest.fixture
def lab(tmp_path, monkeypatch):
    for table, name in {
        "VISION_MODELS": "model",
        "DATASETS": "pictures",
        "IMAGE_GENERATORS": "generator",
        "IMAGE_EDITORS": "editor",
        "DESCRIBERS": "describer",
    }.items():
        monkeypatch.setattr(registry, table, {"tiny": ("Tiny", f"tests.support.tiny_lab.load_{name}")})
    monkeypatch.setattr(registry, "TOOLSETS", {"tiny": registry.Toolset("Tiny", "tiny", "tiny", "tiny")})
    return Laboratory(LabSettings(tmp_path, batch_size=4, dataset="tiny"))
