"""The contracts between the parts of the laboratory: plain data, and protocols of one to three verbs.

Plug-ins implement these. Images are `PIL.Image.Image` in mode RGB everywhere, unless said otherwise.
"""

from workers.protocols.conversation import Backbone, Emit, ImagePart, Message, Reply, StatusNote, usage_of
from workers.protocols.images import (
    Describer,
    ImageEditor,
    ImageGenerator,
    ImageMemory,
    Json,
    Picture,
    Progress,
    Provenance,
    no_progress,
)
from workers.protocols.models import (
    WHOLE_IMAGE,
    Box,
    Classifier,
    ConceptModel,
    CroppingModel,
    Dataset,
    Detection,
    Detector,
    LayerInfo,
    PublishedDataset,
    PublishedLayer,
    Scale,
    VisionModel,
    probabilities,
    visible_part,
)
from workers.protocols.sandbox import Bounds, ExperimentResult, Sandbox
from workers.protocols.settings import LabSettings, Precision, Provider, Surroundings
from workers.protocols.systems import Exemplar, Response, Subject, UnitIndex, UnitRecord

__all__ = [
    "WHOLE_IMAGE",
    "Backbone",
    "Bounds",
    "Box",
    "Classifier",
    "ConceptModel",
    "CroppingModel",
    "Dataset",
    "Describer",
    "Detection",
    "Detector",
    "Emit",
    "Exemplar",
    "ExperimentResult",
    "ImageEditor",
    "ImageGenerator",
    "ImageMemory",
    "ImagePart",
    "Json",
    "LabSettings",
    "LayerInfo",
    "Message",
    "Picture",
    "Precision",
    "Progress",
    "Provenance",
    "Provider",
    "PublishedDataset",
    "PublishedLayer",
    "Reply",
    "Response",
    "Sandbox",
    "Scale",
    "StatusNote",
    "Subject",
    "Surroundings",
    "UnitIndex",
    "UnitRecord",
    "VisionModel",
    "no_progress",
    "probabilities",
    "usage_of",
    "visible_part",
]
