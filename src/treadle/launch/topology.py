"""What a captured graph consists of."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import warp as wp

__all__ = ["GraphTopology", "count_operations", "read_topology"]

_NODE = re.compile(r'^\s*"graph_\d+_node_\d+"\s*\[', re.MULTILINE)
_KERNEL = re.compile(r'shape="octagon"\s*label="\d+\n(\w+)')
"""The driver draws kernels as octagons, with their number and name in the label."""


@dataclass(frozen=True)
class GraphTopology:
    """Nodes of a graph."""

    node_count: int
    """Number of nodes."""
    kernels: tuple[str, ...]
    """Names of the kernels."""
    exact: bool
    """Whether the CUDA driver said so. Else it is what the owner's launch caches noted, without other launches."""


def count_operations(graph: wp.Graph) -> int | None:
    """Return how many launches, copies and fills are in a graph, ``None`` if it is not known.

    The CUDA driver knows its nodes. On the CPU, Warp's recorder knows, which is no public part of Warp; without it
    there are the modules that the graph uses, which say nothing of copies.
    """
    if graph.device.is_cuda:
        topology = read_topology(graph)
        return None if topology is None else topology.node_count
    count: int | None = getattr(getattr(graph, "_apic_capture", None), "operation_count", None)
    return count if count is not None else (len(graph.module_execs) or None)


def read_topology(graph: wp.Graph) -> GraphTopology | None:
    """Ask the CUDA driver for the nodes of a graph, by way of the DOT file that it writes.

    Returns:
        The topology; ``None`` for a CPU graph, or where there is nothing to be read.
    """
    if not graph.device.is_cuda:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.dot")
        try:
            wp.capture_debug_dot_print(graph, str(path), verbose=False)
            text = path.read_text(errors="replace")
        except (OSError, RuntimeError):
            return None
    return parse_dot(text)


def parse_dot(text: str) -> GraphTopology | None:
    """Return the topology that a DOT file of the CUDA driver describes, ``None`` if it does not look like one."""
    if not text.startswith("digraph"):
        return None
    nodes = len(_NODE.findall(text))
    if nodes == 0 and "node" in text.lower():
        return None
    return GraphTopology(nodes, tuple(_KERNEL.findall(text)), exact=True)
