"""Record Warp launches once and replay them safely; capture the largest legal graphs. Needs ``warp-lang`` only."""

from treadle.launch.auditing import AuditReport, audit
from treadle.launch.bound import BoundLaunch
from treadle.launch.cache import LaunchCache
from treadle.launch.errors import AllocationError, CaptureWarning, LaunchError, StaleArgumentError
from treadle.launch.graph import GraphCache
from treadle.launch.modes import LaunchContract, LaunchMode, resolve_contract, resolve_mode
from treadle.launch.pipeline import Island, Pipeline, Stage
from treadle.launch.pointers import CachedPointer
from treadle.launch.scope import LaunchScope
from treadle.launch.signature import ArgumentSignature
from treadle.launch.stats import GraphStats, LaunchStats, SiteStats
from treadle.launch.streams import torch_stream
from treadle.launch.table import PipelineTable, StageRow
from treadle.launch.topology import GraphTopology

__all__ = [
    "AllocationError",
    "ArgumentSignature",
    "AuditReport",
    "BoundLaunch",
    "CachedPointer",
    "CaptureWarning",
    "GraphCache",
    "GraphStats",
    "GraphTopology",
    "Island",
    "LaunchCache",
    "LaunchContract",
    "LaunchError",
    "LaunchMode",
    "LaunchScope",
    "LaunchStats",
    "Pipeline",
    "PipelineTable",
    "SiteStats",
    "Stage",
    "StageRow",
    "StaleArgumentError",
    "audit",
    "resolve_contract",
    "resolve_mode",
    "torch_stream",
]
