"""The contracts between the parts of the laboratory: plain data, and protocols of one to three verbs.

Plug-ins implement these. Images are `PIL.Image.Image` in mode RGB everywhere, unless said otherwise.
"""

from workers.protocols.conversation import Backbone as Backbone
from workers.protocols.conversation import Emit as Emit
from workers.protocols.conversation import ImagePart as ImagePart
from workers.protocols.conversation import Message as Message
from workers.protocols.conversation import Reply as Reply
from workers.protocols.conversation import StatusNote as StatusNote
from workers.protocols.conversation import usage_of as usage_of
from workers.protocols.groups import GROUP_SPLITS as GROUP_SPLITS
from workers.protocols.groups import GroupedDataset as GroupedDataset
from workers.protocols.groups import GroupSplit as GroupSplit
from workers.protocols.images import Describer as Describer
from workers.protocols.images import ImageEditor as ImageEditor
from workers.protocols.images import ImageGenerator as ImageGenerator
from workers.protocols.images import ImageMemory as ImageMemory
from workers.protocols.images import Json as Json
from workers.protocols.images import Picture as Picture
from workers.protocols.images import Progress as Progress
from workers.protocols.images import Provenance as Provenance
from workers.protocols.images import no_progress as no_progress
from workers.protocols.judging import OneShotLabeller as OneShotLabeller
from workers.protocols.judging import PresenceJudge as PresenceJudge
from workers.protocols.judging import PromptWriter as PromptWriter
from workers.protocols.judging import WrittenPrompts as WrittenPrompts
from workers.protocols.models import WHOLE_IMAGE as WHOLE_IMAGE
from workers.protocols.models import Box as Box
from workers.protocols.models import Classifier as Classifier
from workers.protocols.models import ConceptModel as ConceptModel
from workers.protocols.models import CroppingModel as CroppingModel
from workers.protocols.models import Dataset as Dataset
from workers.protocols.models import Detection as Detection
from workers.protocols.models import Detector as Detector
from workers.protocols.models import LayerInfo as LayerInfo
from workers.protocols.models import PublishedDataset as PublishedDataset
from workers.protocols.models import PublishedLayer as PublishedLayer
from workers.protocols.models import Scale as Scale
from workers.protocols.models import VisionModel as VisionModel
from workers.protocols.models import check_layers as check_layers
from workers.protocols.models import probabilities as probabilities
from workers.protocols.models import visible_part as visible_part
from workers.protocols.sandbox import Bounds as Bounds
from workers.protocols.sandbox import ExperimentResult as ExperimentResult
from workers.protocols.sandbox import Sandbox as Sandbox
from workers.protocols.settings import LabSettings as LabSettings
from workers.protocols.settings import Precision as Precision
from workers.protocols.settings import Provider as Provider
from workers.protocols.settings import Surroundings as Surroundings
from workers.protocols.systems import Exemplar as Exemplar
from workers.protocols.systems import MapImage as MapImage
from workers.protocols.systems import Response as Response
from workers.protocols.systems import Subject as Subject
from workers.protocols.systems import UnitIndex as UnitIndex
from workers.protocols.systems import UnitRecord as UnitRecord
