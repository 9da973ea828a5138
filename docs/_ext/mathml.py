"""Formulas as MathML, made at build time: no page needs a script or another host to show them.

latex2mathml finds the structure. Here it gets the spaces that TeX would leave, primes beside letters and not
above them, and places where a line may be broken: browsers never break a line within a formula.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
ET.register_namespace("", NAMESPACE)
BREAKS = set("=≤≥<>∈⪯⪰∝∼←↦,+−⋅×")  # a line may end behind these, outside brackets
OPEN, CLOSE, PRIME = set("([{⌈⌊⟨"), set(")]}⌉⌋⟩"), "′"


def make(formula: str, display: str) -> ET.Element:
    """The formula's element ``math``."""
    found = str(convert(formula, display=display))
    if "\\" in found or "&</" in found:  # what it does not know it writes as it is
        raise ExtensionError(f"a formula that cannot become MathML: {formula}")
    math = ET.fromstring(found)
    for element in list(math.iter()):
        _primes_beside(element)
    for element in math.iter():
        _space(element)
    return math


def in_pieces(math: ET.Element) -> list[ET.Element]:
    """The same as several elements, between which a line may be broken."""
    pieces: list[list[ET.Element]] = [[]]
    depth = 0
    for child in math[0]:
        pieces[-1].append(child)
        text = _text(child)
        depth += (text in OPEN) - (text in CLOSE)
        if depth == 0 and text in BREAKS and len(pieces[-1]) > 1:
            pieces.append([])
    return [_of("math", _of("mrow", *piece)) for piece in pieces if piece]


def _of(tag: str, *children: ET.Element) -> ET.Element:
    element = ET.Element(f"{{{NAMESPACE}}}{tag}")
    element.extend(children)
    return element


def _is(element: ET.Element, *tags: str) -> bool:
    return element.tag.removeprefix(f"{{{NAMESPACE}}}") in tags


def _core(element: ET.Element) -> ET.Element:
    """What indices are on."""
    while _is(element, "msub", "msup", "msubsup", "munder", "munderover") and len(element):
        element = element[0]
    return element


def _text(element: ET.Element) -> str:
    return (_core(element).text or "").strip()


def _primes_beside(element: ET.Element) -> None:
    """A prime is a letter of its own height already: as an exponent it would fly away."""
    if not _is(element, "msup", "msubsup"):
        return
    above = element[-1]
    first = above[0] if _is(above, "mrow") and len(above) else above
    if (first.text or "") != PRIME:
        return
    prime = _of("mo")
    prime.text = PRIME
    element[0] = _of("mrow", element[0], prime)
    if first is not above and len(above) > 1:
        above.remove(first)
        return
    element.remove(above)
    element.tag = f"{{{NAMESPACE}}}{'msub' if len(element) == 2 else 'mrow'}"


def _space(parent: ET.Element) -> None:
    """TeX's spaces about names, bars and slashes."""
    children = list(parent)
    for place, child in enumerate(children):
        core = _core(child)
        text = (core.text or "").strip()
        if not _is(core, "mo", "mi") or core.get("fence"):
            continue
        if text in ("‖", "|", "/", PRIME):
            core.attrib.update(lspace="0", rspace="0", stretchy="false")
        elif len(text) > 1 and text.isalpha():
            before = _text(children[place - 1]) if place else "("
            after = _text(children[place + 1]) if place + 1 < len(children) else ")"
            core.tag = f"{{{NAMESPACE}}}mo"
            core.set("lspace", "0" if before in OPEN | BREAKS else "0.17em")
            core.set("rspace", "0" if after in OPEN | CLOSE | BREAKS else "0.17em")
        elif text in BREAKS:
            core.tag = f"{{{NAMESPACE}}}mo"  # some come as letters, without spaces


def _inline(writer: Any, node: nodes.math) -> None:
    pieces = in_pieces(make(node.astext(), "inline"))
    writer.body.append("".join(ET.tostring(piece, encoding="unicode") for piece in pieces))
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="math-display"))
    writer.body.append(ET.tostring(make(node.astext(), "block"), encoding="unicode"))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
