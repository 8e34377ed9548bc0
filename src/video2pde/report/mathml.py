"""Formulae for the page: LaTeX in, a small tree of MathML elements out.

A tree, not markup: the page builds its elements one by one, so that no text is ever read as HTML.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias
from xml.etree import ElementTree

from latex2mathml.converter import convert

Tree: TypeAlias = tuple[str, dict[str, str], "tuple[Tree, ...] | str"]

_TAGS = re.compile(
    r"math|mrow|mi|mn|mo|ms|mtext|mspace|mfrac|msqrt|mroot|msub|msup|msubsup|munder|mover|munderover"
    r"|mtable|mtr|mtd|mstyle|mpadded|mphantom"
)
_ATTRIBUTES = re.compile(
    r"stretchy|fence|form|width|linethickness|accent|accentunder|minsize|maxsize|lspace|rspace"
    r"|displaystyle|scriptlevel|mathvariant|columnalign|rowspacing|columnspacing"
)


@lru_cache(maxsize=512)
def latex_to_tree(latex: str) -> Tree | None:
    """Convert LaTeX to MathML as (tag, attributes, children or text); None where it cannot be set.

    The caller shows the formula's plain text then.
    """
    try:
        root = ElementTree.fromstring(convert(latex))
    except Exception as error:
        # The converter's errors share no base class; anything raised elsewhere is a fault of ours.
        if type(error).__module__.startswith("latex2mathml") or isinstance(error, ElementTree.ParseError):
            return None
        raise
    return _tree(root)


def _tree(element: ElementTree.Element) -> Tree | None:
    tag = element.tag.rpartition("}")[2]
    if not _TAGS.fullmatch(tag):
        return None
    attributes = {name: value for name, value in element.attrib.items() if _ATTRIBUTES.fullmatch(name)}
    if len(element) == 0:
        return tag, attributes, element.text or ""
    children = tuple(_tree(child) for child in element)
    known = tuple(child for child in children if child is not None)
    return (tag, attributes, known) if len(known) == len(children) else None
