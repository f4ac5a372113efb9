"""Models over blocks of samples: data larger than memory, clusters, minibatches."""

from slomodel.model.blocks.block_model import BlockModel, over_blocks
from slomodel.model.blocks.minibatch import Minibatches, minibatches

__all__ = ["BlockModel", "Minibatches", "minibatches", "over_blocks"]
