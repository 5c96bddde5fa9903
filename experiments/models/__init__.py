"""What people see and keep: one module per noun."""

from experiments.models.api_token import ApiToken
from experiments.models.attempts import Attempts
from experiments.models.audit import AuditEntry
from experiments.models.catalogue import Layer, Model, Unit
from experiments.models.comment import Comment, Thread, Wording
from experiments.models.dataset import DataSet, Exemplar, Index, Profile
from experiments.models.event import Event
from experiments.models.exchange import Arrival, Export, Import, Opinions
from experiments.models.experiment import Experiment, Observation
from experiments.models.human_reply import Turn
from experiments.models.hypothesis import Hypothesis
from experiments.models.idempotency_key import IdempotencyKey
from experiments.models.image import Image
from experiments.models.invitation import Invitation
from experiments.models.job import Job
from experiments.models.label import Label
from experiments.models.login_link import LoginLink
from experiments.models.member import Member
from experiments.models.notification import Notification
from experiments.models.pairwise import Choice, Contest, Judge, Pair
from experiments.models.plugin import Backbone, ToolSet
from experiments.models.review import Adjudication, Item, Queue, Review
from experiments.models.run import Run
from experiments.models.saved_view import SavedView
from experiments.models.search_text import Gist, Passage
from experiments.models.session import Session
from experiments.models.share import Share
from experiments.models.tag import Tag

__all__ = [
    "Adjudication",
    "ApiToken",
    "Arrival",
    "Attempts",
    "AuditEntry",
    "Backbone",
    "Choice",
    "Comment",
    "Contest",
    "DataSet",
    "Event",
    "Exemplar",
    "Experiment",
    "Export",
    "Gist",
    "Hypothesis",
    "IdempotencyKey",
    "Image",
    "Import",
    "Index",
    "Invitation",
    "Item",
    "Job",
    "Judge",
    "Label",
    "Layer",
    "LoginLink",
    "Member",
    "Model",
    "Notification",
    "Observation",
    "Opinions",
    "Pair",
    "Passage",
    "Profile",
    "Queue",
    "Review",
    "Run",
    "SavedView",
    "Session",
    "Share",
    "Tag",
    "Thread",
    "ToolSet",
    "Turn",
    "Unit",
    "Wording",
]
