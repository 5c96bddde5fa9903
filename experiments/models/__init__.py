"""The tables of the database, one module per noun, with the choices of their columns."""

from experiments.models.api_token import ApiToken, IdempotencyKey, TokenScope
from experiments.models.audit import AuditEntry
from experiments.models.catalogue import Label, Layer, Unit, VisionModelRow
from experiments.models.causal import CausalCheck
from experiments.models.circuit import Circuit, CircuitMemberRow
from experiments.models.circuit_graph import CircuitGraph
from experiments.models.circuit_search import CircuitSearch
from experiments.models.code_version import CodeVersion
from experiments.models.comment import Comment, Thread, Wording
from experiments.models.concept_question import ConceptAnswer, ConceptChoice, ConceptQuestion
from experiments.models.dataset import Dataset, Exemplar, LayerIndex, UnitProfile
from experiments.models.evaluation import (
    CheckStatus,
    Evaluation,
    EvaluationItem,
    GeneratedImage,
    ItemStatus,
    LabelCheck,
    Measurement,
)
from experiments.models.event import Event
from experiments.models.exchange import Export, ExportSubject, Format, Import, ImportedOpinions, ImportedRun, ImportKind
from experiments.models.experiment import Experiment, Hypothesis, Observation
from experiments.models.human_reply import HumanReply, ReplyPurpose
from experiments.models.identity import Identity
from experiments.models.image import Image
from experiments.models.invitation import Invitation
from experiments.models.job import Job, JobKind, JobStatus
from experiments.models.login_link import LoginLink
from experiments.models.member import Member, Role
from experiments.models.notification import Notification, NotificationKind
from experiments.models.pairwise import Answer, Judge, Pair, PairKind, PairwiseTrial, Vote
from experiments.models.plugin import Backbone, Toolset
from experiments.models.preset import Preset
from experiments.models.review import Adjudication, Review, ReviewItem, ReviewQueue, ReviewState, ReviewVerdict
from experiments.models.run import Outcome, Run, SavedView, ViewedList
from experiments.models.run_queue import RunQueue
from experiments.models.search_text import RunSummary, SearchText, TextKind
from experiments.models.session import Session, SignInAttempts
from experiments.models.share import Share
from experiments.models.sparse import SparseAutoencoderRow
from experiments.models.study import Study, StudyItem
from experiments.models.sweep import Sweep, SweepPriority, SweepStatus
from experiments.models.tag import Tag
from experiments.models.webhook import DeliveryStatus, Webhook, WebhookDelivery, WebhookEvent, WebhookShape
from workers.record.evaluation_kinds import EvaluationKind
