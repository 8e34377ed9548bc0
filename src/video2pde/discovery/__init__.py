"""Structure discovery: the weak system, sparse fits of every library, and what the recording can tell apart."""

from video2pde.discovery.identifiability import Identifiability
from video2pde.discovery.regression import SparseFit
from video2pde.discovery.system import all_terms, diagnose, discover, Weak, weak_system

__all__ = ["Identifiability", "SparseFit", "Weak", "all_terms", "diagnose", "discover", "weak_system"]
