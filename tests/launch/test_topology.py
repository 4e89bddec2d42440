"""Reading the DOT file of the CUDA driver."""

from __future__ import annotations

from treadle.launch.topology import parse_dot

DOT = r"""digraph dot {
subgraph cluster_1 {
label="graph_1" graph[style="dashed"];
"graph_1_node_0"[style="bold" shape="octagon" label="0
add_3f2a1b_cuda_kernel_forward
"];

"graph_1_node_1"[style="solid" shape="trapezium"label="1
MEMCPY
(DtoD,16)
"];

"graph_1_node_0" -> "graph_1_node_1";
}
}
"""


def test_nodes_and_kernels():
    topology = parse_dot(DOT)
    assert topology.node_count == 2
    assert topology.kernels == ("add_3f2a1b_cuda_kernel_forward",)
    assert topology.exact


def test_an_empty_graph():
    assert (
        parse_dot('digraph dot {\nsubgraph cluster_1 {\nlabel="graph_1" graph[style="dashed"];\n}\n}\n').node_count == 0
    )


def test_what_is_not_understood_is_no_topology():
    assert parse_dot("") is None
    assert parse_dot("digraph dot { a_node [label=1] }") is None
