"""What people see and keep: one module per noun."""

from experiments.models.api_token import ApiToken, IdempotencyKey
from experiments.models.audit import AuditEntry
from experiments.models.catalogue import Label, Layer, Unit, VisionModelRow
from experiments.models.comment import Comment, Thread, Wording
from experiments.models.dataset import Dataset, Exemplar, LayerIndex, UnitProfile
from experiments.models.event import Event
from experiments.models.exchange import Export, Import, ImportedOpinions, ImportedRun
from experiments.models.experiment import Experiment, Hypothesis, Observation
from experiments.models.human_reply import HumanReply
from experiments.models.image import Image
from experiments.models.invitation import Invitation
from experiments.models.job import Job
from experiments.models.login_link import LoginLink
from experiments.models.member import Member
from experiments.models.notification import Notification
from experiments.models.pairwise import Judge, Pair, PairwiseTrial, Vote
from experiments.models.plugin import Backbone, Toolset
from experiments.models.review import Adjudication, Review, ReviewItem, ReviewQueue
from experiments.models.run import Run, SavedView
from experiments.models.search_text import RunSummary, SearchText
from experiments.models.session import Session, SignInAttempts
from experiments.models.share import Share
from experiments.models.tag import Tag
