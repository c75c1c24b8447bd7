"""What a model says of itself."""

from __future__ import annotations

from typing import Mapping

from . import element_types

_UNKNOWN_VERSION = 2**63 - 1


class NodeArg:
    """An input, an output or an initializer: `name`, `shape` (ints, names, None where nothing is known; [] for an unknown
    number of dims) and `type`, such as tensor(float)."""

    def __init__(self, name: str, of: str, shape: list, is_ranked: bool = True):
        self.name, self.type, self.shape = name, element_types.type_of(of), shape
        self.is_ranked = is_ranked
        self.of = of  # the type in Tenon's words
        # The element's type; "" of what is no tensor, whose elements may differ in shape.
        self.element = self.type[7:-1] if self.type.startswith("tensor(") else ""

    @classmethod
    def declared(cls, tensor: Mapping, dims: Mapping[str, int] = {}, denoted: Mapping[str, int] = {}) -> NodeArg:
        """Of the model's description, with the sizes of `dims` for those that are called so, and of `denoted` by what they are for."""
        shape = [None if d == "?" or (isinstance(d, int) and d < 0) else dims.get(d, d) for d in tensor.get("shape", [])]
        for i, denotation in enumerate(tensor.get("denotations", [])):
            if not isinstance(shape[i], int):
                shape[i] = denoted.get(denotation.lower(), shape[i])
        is_tensor = "(" not in tensor["dtype"]
        return cls(tensor["name"], tensor["dtype"], shape, "shape" in tensor or not is_tensor)

    @property
    def is_open(self) -> bool:
        """Whether it does not say all of its sizes."""
        return not self.is_ranked or any(not isinstance(d, int) for d in self.shape)

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """Who made the model and what they wrote into it: producer_name, graph_name, domain, description, graph_description,
    version, custom_metadata_map (texts by key)."""

    def __init__(self, description: Mapping):
        self.producer_name = description.get("producer_name", "")
        self.graph_name = description.get("graph", "")
        self.domain = description.get("domain", "")
        self.description = description.get("doc", "")
        self.graph_description = description.get("graph_doc", "")
        self.version = description.get("model_version") or _UNKNOWN_VERSION
        self.custom_metadata_map = dict(description.get("metadata", {}))
