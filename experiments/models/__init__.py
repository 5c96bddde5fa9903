"""What people see and keep: one module per noun."""

from experiments.models.catalogue import Exemplar, Layer, Model, Unit
from experiments.models.event import Event
from experiments.models.experiment import Experiment, Observation
from experiments.models.hypothesis import Hypothesis
from experiments.models.image import Image
from experiments.models.label import Label
from experiments.models.login_link import LoginLink
from experiments.models.member import Member
from experiments.models.run import Run

__all__ = [
    "Event",
    "Exemplar",
    "Experiment",
    "Hypothesis",
    "Image",
    "Label",
    "Layer",
    "LoginLink",
    "Member",
    "Model",
    "Observation",
    "Run",
    "Unit",
]
