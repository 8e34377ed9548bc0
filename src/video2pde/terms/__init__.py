"""Candidate terms: one definition each, and its views."""

from video2pde.terms.catalogue import CATALOGUE, DRIFT, get_term, LIBRARIES, libraries, own_terms, searched
from video2pde.terms.term import Part, Term

__all__ = ["CATALOGUE", "DRIFT", "LIBRARIES", "Part", "Term", "get_term", "libraries", "own_terms", "searched"]
