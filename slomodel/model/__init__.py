"""The public object: compile a model, then evaluate, differentiate, bind and solve it."""

from slomodel.model.compilation import compile
from slomodel.model.model import Model

__all__ = ["Model", "compile"]
