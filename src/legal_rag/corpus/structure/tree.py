"""The outline tree: nodes as spans of the text, nested, and their JSON form."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from operator import index
from typing import Any, Literal, get_args

# What makes a section: being the document itself, a heading, a number, or nothing but its length.
Kind = Literal["document", "heading", "number", "part"]


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A section of a document, as a span of its text.

    The children lie inside it, in order, each beginning where the one before ends, the last ending where it ends;
    what stands before the first of them is its own text.
    """

    node_id: str  # "0000" is the document; then in reading order
    title: str  # for reading: on one line, without the signs around it, cut if long
    level: int  # 0: the document; a child's is one more than its parent's
    char_start: int  # of the whole section, heading included
    char_end: int
    heading: tuple[int, int]  # where the text writes its title or its number; empty where it writes none
    kind: Kind
    children: tuple["TreeNode", ...] = ()


def walk(tree: TreeNode) -> Iterator[TreeNode]:
    """Yield a node and all below it in reading order."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def find_node(tree: TreeNode, where: str | int) -> TreeNode:
    """Return the node with an id, or the innermost section that a character belongs to.

    Args:
        tree: Where to look.
        where: A node's id, or an offset in the document's text.

    Raises:
        LookupError: If there is no such node, or the offset is outside of the text.
    """
    if isinstance(where, int):
        return _innermost(tree, where)
    for node in walk(tree):
        if node.node_id == where:
            return node
    raise LookupError(
        f"no node {where!r} (the tree's go from {tree.node_id} to {max(node.node_id for node in walk(tree))})"
    )


def _innermost(node: TreeNode, offset: int) -> TreeNode:
    if not node.char_start <= offset < node.char_end:
        raise LookupError(f"no character {offset} (the text has those from {node.char_start} to {node.char_end - 1})")
    while inside := [child for child in node.children if child.char_start <= offset < child.char_end]:
        node = inside[0]
    return node


def to_json(
    tree: TreeNode, *, doc_name: str = "", doc_description: str = "", summaries: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a document's tree as a JSON value, in the form of PageIndex.

    `start_index` and `end_index` are characters of the text, the end exclusive; a node has `nodes` if it has any.

    Args:
        tree: Of a whole document.
        doc_name: What the document is called, for instance by its id.
        doc_description: What it is about.
        summaries: What single sections say, by node id.
    """
    said = summaries or {}
    return {
        "doc_name": doc_name,
        "doc_description": doc_description,
        "end_index": tree.char_end,
        "structure": [_node_json(child, said) for child in tree.children],
    }


def _node_json(node: TreeNode, summaries: Mapping[str, str]) -> dict[str, Any]:
    value: dict[str, Any] = {
        "title": node.title,
        "node_id": node.node_id,
        "start_index": node.char_start,
        "end_index": node.char_end,
        "heading": list(node.heading),
        "kind": node.kind,
    }
    if node.node_id in summaries:
        value["summary"] = summaries[node.node_id]
    if node.children:
        value["nodes"] = [_node_json(child, summaries) for child in node.children]
    return value


def from_json(value: Mapping[str, Any]) -> TreeNode:
    """Return the tree that a JSON value of `to_json` is of.

    Raises:
        ValueError: If it is not one, or its sections do not lie inside one another in order.
    """
    try:
        end = index(value["end_index"])
        children = tuple(_node_of(child, 1) for child in value["structure"])
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not the JSON form of a tree: {error!r} (expected what to_json returns)") from error
    tree = TreeNode("0000", "", 0, 0, end, (0, 0), "document", children)
    _check(tree)
    return tree


def _node_of(value: Mapping[str, Any], level: int) -> TreeNode:
    if value["kind"] not in get_args(Kind):
        raise ValueError(f"no kind of section: {value['kind']!r} (expected one of {', '.join(get_args(Kind))})")
    start, end = value["heading"]
    children = tuple(_node_of(child, level + 1) for child in value.get("nodes", []))
    span = index(value["start_index"]), index(value["end_index"])
    return TreeNode(value["node_id"], value["title"], level, *span, (index(start), index(end)), value["kind"], children)


def _check(tree: TreeNode) -> None:
    """Refuse a tree whose sections do not lie inside one another, in order."""
    for number, node in zip(count(), walk(tree)):
        if node.node_id != node_id(number):
            raise ValueError(f"the id of node {number} in reading order is {node.node_id!r}, not {node_id(number)!r}")
        starts = [child.char_start for child in node.children]
        ends = [child.char_end for child in node.children]
        if starts and (starts[0] < node.char_start or [*starts[1:], node.char_end] != ends):
            raise ValueError(f"the sections inside node {node.node_id!r} do not follow one another to its end")
        if not node.char_start <= node.heading[0] <= node.heading[1] <= node.char_end:
            raise ValueError(f"node {node.node_id!r} has its heading at {node.heading}, outside of its section")


def node_id(number: int) -> str:
    """Return the id of a node by its place in reading order; the document is number 0."""
    return f"{number:04d}"
