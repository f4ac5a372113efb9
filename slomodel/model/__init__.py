"""The public object: compile a model, then evaluate, differentiate, bind and solve it."""

from slomodel.model.model import Model, compile

__all__ = ["Model", "compile"]
