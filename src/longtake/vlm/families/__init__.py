"""Frozen video models, family by family: how each makes its prompt, its positions and its frames' tokens."""

from longtake.vlm.families.choose import FAMILIES as FAMILIES
from longtake.vlm.families.choose import family_named as family_named
from longtake.vlm.families.choose import family_of as family_of
from longtake.vlm.families.family import Chunk as Chunk
from longtake.vlm.families.family import Family as Family
