"""Spaces of templates: knobs, each with a list of candidates, and what is chosen of them."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Sequence

from .. import _tenon
from .._tenon import IterVar

__all__ = ["AnnotateEntity", "ConfigEntity", "ConfigSpace", "InstantiationError", "OtherOptionEntity", "ReorderEntity", "SplitEntity", "VirtualAxis"]

_ANNOTATIONS = ("none", "unroll", "vec")


class InstantiationError(ValueError):
    """A template says, by cfg.raise_error, that there is no schedule for a config."""


class VirtualAxis:
    """A loop that is known by its length: what cfg.axis gives."""

    def __init__(self, length: int | IterVar | "VirtualAxis", name: str = ""):
        self.name = name
        if isinstance(length, VirtualAxis):
            self.length, self.name = length.length, length.name
        elif isinstance(length, IterVar):
            text = str(length.extent)
            if length.extent is None or not text.isdecimal():
                raise ValueError(f"loop '{length.name}' cannot be split by a knob: expected one whose length is a number")
            self.length, self.name = int(text), length.name
        elif hasattr(length, "__index__"):
            self.length = length.__index__()
        else:
            raise TypeError(f"an axis is a loop or its length, not {type(length).__name__}")

    def __repr__(self) -> str:
        return f"vaxis({self.name}, {self.length})"


class SplitEntity:
    """A loop in parts, outermost first; -1 stands for what is left."""

    kind = "sp"

    def __init__(self, size: Sequence[int]):
        self.size = list(size)

    def apply(self, sch: Any, op: Any, axis: IterVar) -> list[IterVar]:
        """The loops that it makes of `axis`."""
        loops = []
        for i in range(1, len(self.size)):
            inner = 1
            for factor in self.size[i:]:
                inner *= factor
            outer, axis = sch[op].split(axis, factor=inner)
            loops.append(outer)
        return [*loops, axis]

    def to_json(self) -> list:
        return self.size

    def __repr__(self) -> str:
        return str(self.size)


class ReorderEntity:
    """An order of loops."""

    kind = "re"

    def __init__(self, perm: Sequence[int]):
        self.perm = list(perm)

    def apply(self, sch: Any, op: Any, axes: Sequence[IterVar]) -> list[IterVar]:
        if len(axes) != len(self.perm):
            raise ValueError(f"expected {len(self.perm)} loops to reorder but got {len(axes)}")
        ordered = [axes[i] for i in self.perm]
        sch[op].reorder(*ordered)
        return ordered

    def to_json(self) -> list:
        return self.perm

    def __repr__(self) -> str:
        return str(self.perm)


class AnnotateEntity:
    """What loops are: "none", "unroll", "vec", or threads they are bound to."""

    kind = "an"

    def __init__(self, anns: Sequence[str]):
        self.anns = list(anns)

    def apply(
        self,
        sch: Any,
        op: Any,
        axes: Sequence[IterVar],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
        cfg: Any = None,
        source: Any = None,
    ) -> list[IterVar]:
        """With `axis_lens`, loops longer than `max_unroll` are not unrolled, nor vectorized where their length is none of
        `vec_size` (cfg.raise_error)."""
        from .. import te

        for i, (axis, ann) in enumerate(zip(axes, self.anns)):
            length = axis_lens[i] if axis_lens is not None else None
            if ann == "unroll":
                if max_unroll is not None and length is not None and length > max_unroll and cfg is not None:
                    cfg.raise_error(f"a loop of {length} is too long to be unrolled")
                sch[op].unroll(axis)
            elif ann == "vec":
                if vec_size is not None and length is not None and length not in vec_size and cfg is not None:
                    cfg.raise_error(f"a loop of {length} is no vector")
                sch[op].vectorize(axis)
            elif ann not in ("none", ""):
                sch[op].bind(axis, te.thread_axis(ann))
        return list(axes)

    def to_json(self) -> list:
        return self.anns

    def __repr__(self) -> str:
        return str(self.anns)


class OtherOptionEntity:
    """A value."""

    kind = "ot"

    def __init__(self, val: Any):
        self.val = val

    def to_json(self) -> Any:
        return self.val

    def __repr__(self) -> str:
        return str(self.val)


_KINDS = {c.kind: c for c in (SplitEntity, ReorderEntity, AnnotateEntity, OtherOptionEntity)}


class Transform:
    """The candidates of one knob."""

    def __init__(self, name: str, entities: list, num_output: int = 0):
        if not entities:
            raise ValueError(f"knob '{name}': there is nothing to choose from")
        self.name, self.entities, self.num_output = name, entities, num_output

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, index: int) -> Any:
        return self.entities[index]

    def __repr__(self) -> str:
        return f"{type(self.entities[0]).__name__}: {len(self)} candidates"


def _splits(name: str, axis: Any, policy: str, num_outputs: int, options: dict) -> list:
    candidates = options.pop("candidate", None)
    keep: Callable | None = options.pop("filter", None)
    max_factor, no_tail = options.pop("max_factor", -1), options.pop("no_tail", False)
    options.pop("tail", None)
    if options:
        raise TypeError(f"define_split '{name}': there is no option {', '.join(map(repr, options))}")
    if (policy == "candidate") != (candidates is not None):
        raise ValueError(f"define_split '{name}': the policy \"candidate\" and a list `candidate` belong together")
    length = VirtualAxis(axis).length
    if candidates is None:
        candidates = _tenon.split_candidates(name, length, num_outputs, policy, max_factor if max_factor is not None else -1, bool(no_tail))
    entities = [SplitEntity(c) for c in candidates]
    for entity in entities:
        inner = 1
        for factor in entity.size[1:]:
            inner *= factor
        if len(entity.size) != num_outputs or any(f < 1 for f in entity.size[1:]) or inner > length:
            raise ValueError(f"define_split '{name}': {entity.size} does not split a loop of {length} into {num_outputs}")
    return [e for e in entities if keep is None or keep(e)]


def _orders(name: str, count: int, policy: str, candidates: Any) -> list:
    identity = list(range(count))
    if policy == "identity":
        orders = [identity]
    elif policy == "all":
        orders = [list(p) for p in itertools.permutations(identity)]
    elif policy == "interval_all":
        raise ValueError(f"define_reorder '{name}': say the orders themselves, policy=\"candidate\", candidate=[[0, 1, 2], ...]")
    elif policy == "candidate" and candidates is not None:
        orders = [list(c) for c in candidates]
        for order in orders:
            if sorted(order) != identity:
                raise ValueError(f"define_reorder '{name}': {order} is no order of {count} loops")
    else:
        raise ValueError(f"define_reorder '{name}': there is no policy '{policy}'; there are identity, all and candidate")
    return [ReorderEntity(o) for o in orders]


def _annotations(name: str, axes: Sequence, policy: str) -> list:
    count = len(axes)
    if policy == "bind_gpu":
        threads = ["blockIdx.x", "threadIdx.x"] if count == 2 else [f"{k}.{d}" for k in ("blockIdx", "threadIdx") for d in "zyx"]
        if count not in (2, 6):
            raise ValueError(f"define_annotate '{name}': bind_gpu is for 2 or 6 loops")
        return [AnnotateEntity(threads)]
    if policy == "bind_gpu_virtual":
        if count not in (3, 9):
            raise ValueError(f"define_annotate '{name}': bind_gpu_virtual is for 3 or 9 loops")
        dims = "x" if count == 3 else "zyx"
        return [AnnotateEntity([f"blockIdx.{d}" for d in dims] + ["vthread"] * len(dims) + [f"threadIdx.{d}" for d in dims])]
    words = policy.replace("try", "none").split("_")
    for word in words:
        if word not in _ANNOTATIONS:
            raise ValueError(f"define_annotate '{name}': there is no policy '{policy}'; it is words of try, none, unroll, vec, or bind_gpu")
    ways = itertools.product(words, repeat=count)
    return [AnnotateEntity(w) for w in ways if w.count("vec") <= 1]


class ConfigSpace:
    """What a template leaves open. While it is found out, each knob is its first candidate."""

    is_fallback = False

    def __init__(self) -> None:
        self.space_map: dict[str, Transform] = {}
        self._entities: dict[str, Any] = {}
        self.flop = 0
        self.errors: list[str] = []
        self.code_hash = None

    # ---- What a template calls ----

    @staticmethod
    def axis(dim: Any) -> VirtualAxis:
        return VirtualAxis(dim)

    reduce_axis = axis

    def define_split(self, name: str, axis: Any, policy: str = "factors", num_outputs: int = 2, **kwargs: Any) -> list[VirtualAxis]:
        """The parts of a loop, outermost first: policy "factors", "power2", "verbose", or "candidate" with a list
        `candidate`; max_factor, filter, no_tail."""
        self._define(name, lambda: _splits(name, axis, policy, num_outputs, dict(kwargs)), num_outputs)
        return [VirtualAxis(max(1, f), f"{name}.{i}") for i, f in enumerate(self[name].size)]

    def define_reorder(self, name: str, axes: Sequence, policy: str = "identity", **kwargs: Any) -> list:
        """An order of loops: policy "identity", "all", or "candidate" with a list `candidate`."""
        self._define(name, lambda: _orders(name, len(axes), policy, kwargs.get("candidate")), len(axes))
        return [axes[i] for i in self[name].perm]

    def define_annotate(self, name: str, axes: Sequence, policy: str, **kwargs: Any) -> list:
        """What loops are: words of none, unroll, vec and try with _ between them, or "bind_gpu", "bind_gpu_virtual"."""
        self._define(name, lambda: _annotations(name, axes, policy), len(axes))
        return list(axes)

    def define_knob(self, name: str, candidate: Sequence) -> None:
        """A value of a list."""
        self._define(name, lambda: [OtherOptionEntity(v) for v in candidate], 0)

    def add_flop(self, flop: float) -> None:
        self.flop += float(flop)

    def raise_error(self, msg: str) -> None:
        """There is no schedule for this config; the template may go on."""
        self.errors.append(msg)

    def valid(self) -> bool:
        return not self.errors

    def multi_filter(self, filter: Callable) -> None:  # pylint: disable=redefined-builtin
        raise NotImplementedError("a config that there is not is said by cfg.raise_error(…)")

    def _define(self, name: str, make: Callable[[], list], num_output: int) -> None:
        if name in self.space_map:
            if name not in self._entities:
                raise ValueError(f"knob '{name}' is there already")
            return
        transform = Transform(name, make(), num_output)
        self.space_map[name] = transform
        self._entities[name] = transform[0]

    def __getitem__(self, name: str) -> Any:
        if name not in self._entities:
            raise KeyError(f"there is no knob '{name}'")
        return self._entities[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entities

    # ---- Looking ----

    def __len__(self) -> int:
        count = 1
        for transform in self.space_map.values():
            count *= len(transform)
        return count

    @property
    def range_length(self) -> int:
        return len(self)

    @property
    def dims(self) -> list[int]:
        return [len(t) for t in self.space_map.values()]

    def get(self, index: int) -> "ConfigEntity":
        """The config of a number: the first knob changes fastest."""
        if not 0 <= index < len(self):
            raise IndexError(f"the space has {len(self)} configs, but not number {index}")
        places, left = {}, index
        for name, transform in self.space_map.items():
            places[name] = left % len(transform)
            left //= len(transform)
        return ConfigEntity(self, places)

    def of_places(self, places: dict[str, int]) -> "ConfigEntity":
        return ConfigEntity(self, dict(places))

    def find(self, entities: dict[str, Any]) -> dict[str, int] | None:
        """The places of these entities (as a log has them), by knob; None where one is no candidate."""
        places = {}
        for name, transform in self.space_map.items():
            at = [i for i, e in enumerate(transform.entities) if name in entities and e.to_json() == entities[name]]
            if not at:
                return None
            places[name] = at[0]
        return places

    def sample_ints(self, m: int) -> list[int]:
        import random

        return random.Random(0).sample(range(len(self)), min(m, len(self)))

    def __repr__(self) -> str:
        lines = [f"ConfigSpace (len={len(self)}, range_length={len(self)}, space_map="]
        lines += [f"  {i:2d} {name}: {t}" for i, (name, t) in enumerate(self.space_map.items())]
        return "\n".join(lines) + "\n)"


class ConfigEntity(ConfigSpace):
    """A config: a candidate of each knob."""

    def __init__(self, space: ConfigSpace, places: dict[str, int]):
        super().__init__()
        self.space_map = space.space_map
        self.places = places
        self._entities = {name: space.space_map[name][place] for name, place in places.items()}

    @property
    def index(self) -> int:
        index, scale = 0, 1
        for name, transform in self.space_map.items():
            index += self.places[name] * scale
            scale *= len(transform)
        return index

    def get_other_option(self) -> dict:
        return {name: e.val for name, e in self._entities.items() if isinstance(e, OtherOptionEntity)}

    def to_json_dict(self) -> dict:
        return {
            "index": self.index,
            "code_hash": self.code_hash,
            "entity": [[name, e.kind, e.to_json()] for name, e in self._entities.items()],
        }

    def __repr__(self) -> str:
        return f"{[(name, e) for name, e in self._entities.items()]},{self.code_hash},{self.index}"


class LoggedConfig(ConfigSpace):
    """A config of a log, without its space: a template that it is applied to finds its knobs in it."""

    def __init__(self, config: dict):
        super().__init__()
        self.index, self.code_hash = config.get("index"), config.get("code_hash")
        for name, kind, value in config["entity"]:
            if kind not in _KINDS:
                raise ValueError(f"a config of the log has a knob '{name}' of kind '{kind}', which there is not")
            self._entities[name] = _KINDS[kind](value)

    def _define(self, name: str, make: Callable[[], list], num_output: int) -> None:
        if name not in self._entities:
            raise ValueError(f"the log's config has no knob '{name}'")

    def to_json_dict(self) -> dict:
        entity = [[name, e.kind, e.to_json()] for name, e in self._entities.items()]
        return {"index": self.index, "code_hash": self.code_hash, "entity": entity}

    def __repr__(self) -> str:
        return f"{list(self._entities.items())},{self.code_hash},{self.index}"


class FallbackConfig(ConfigSpace):
    """Outside of templates, and where nothing is known: each knob is its first candidate; one that is defined again is that again."""

    is_fallback = True

    def _define(self, name: str, make: Callable[[], list], num_output: int) -> None:
        transform = Transform(name, make(), num_output)
        self.space_map[name] = transform
        self._entities[name] = transform[0]

    def __setitem__(self, name: str, entity: Any) -> None:
        self._entities[name] = entity
