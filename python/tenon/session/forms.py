"""The libraries that a session's model is compiled to.

A library for the model as it stands serves all calls, where there is one. It takes dims of one name to be of one size, and
what it was compiled for bounds what it can be called with; ONNX Runtime finds all of that out while it runs. So there are
steps down from it, each of which knows less of other calls and more of this one:

    as_it_stands    dims of one name are one size, and none is 0
    may_be_empty    open dims may be 0: the cache of a decoder's first step, a picture without boxes
    unnamed         every open dim has a size of its own
    of_sizes        compiled for the sizes of this call
    of_numbers      and for its integers: inputs of one element, which choose between branches

A step is taken where the one before cannot be compiled, refuses the sizes or asks for more memory than there is, and calls of these sizes begin there from
then on. Initializers that a call overrides are inputs of libraries of their own. All of them lie in the cache."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import tempfile
import threading
import weakref
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from .. import _tenon, nd
from ..runtime import load_module
from ..target import resolve
from . import element_types, errors
from .parameters import NodeArg
from .profile import Profile

_AS_IT_STANDS, _MAY_BE_EMPTY, _UNNAMED, _OF_SIZES, _OF_NUMBERS = range(5)
_MOST_FORMS = 64  # that are kept open


class Progress:
    """One line on standard error while a model is compiled: its phases where that is a terminal."""

    def __init__(self, name: str, quiet: bool):
        self._name, self._quiet, self._phase = name, quiet, ""
        self._live = not quiet and sys.stderr.isatty()

    def __call__(self, phase: str, done: int, total: int) -> None:
        if self._quiet or phase == self._phase:
            return
        first, self._phase = not self._phase, phase
        text = f"tenon: compiling {self._name}"
        if self._live:
            print(f"\r\x1b[K{text}: {phase}", end="", file=sys.stderr, flush=True)
        elif first:
            print(f"{text}, which is kept for the next time", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._live and self._phase:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class Form:
    """One library, ready to be called with arrays in the order of `inputs`."""

    def __init__(self, path: str, max_team: int):
        self.path = path
        self._module = load_module(path)
        info = json.loads(self._module.runtime_module.info())
        signature = info["functions"][0]
        self._name = info["name"]
        self.inputs = [NodeArg.declared(p) for p in signature["inputs"]]
        self.outputs = [NodeArg.declared(p) for p in signature["outputs"]]
        self.launches = info.get("launches", [])  # of a library that times its kernels
        self._main = self._module.entry_func.limited(max_team)
        self._max_team = max_team

    def call(self, feeds: Mapping[str, Any], types: Sequence[str], stop: _tenon.StopFlag | None = None) -> list:
        """
        Results in the order of `outputs`, whose elements, in sequences too, are of `types`.
        A RuntimeError once `stop` is set.
        """
        main = self._main if stop is None else self._module.entry_func.limited(self._max_team, stop=stop)
        results = main(*(feeds[i.name] for i in self.inputs))
        results = results if isinstance(results, tuple) and len(self.outputs) != 1 else (results,)
        return [_given(r, t) for r, t in zip(results, types)]


    def launch_times(self) -> np.ndarray:
        """Of each of `launches`, how often there was one and the nanoseconds that they took, since the library was loaded."""
        if not self.launches:
            return np.zeros((0, 2), np.int64)
        return self._module[self._name + "_launch_times"]().numpy()


def _call_key(sizes: Mapping[str, tuple], numbers: Mapping[str, np.ndarray]) -> tuple:
    return tuple(sizes.items()), tuple((name, int(a.item())) for name, a in numbers.items())


def _given(result: Any, element: str) -> Any:
    """Of tensors, arrays that keep their memory."""
    if isinstance(result, nd.NDArray):
        return element_types.given_as(result._array(), element)
    return [_given(r, element) for r in result] if isinstance(result, list) else result


def folder_of(owner: Any) -> str:
    """One that goes with its owner."""
    folder = tempfile.mkdtemp(prefix="tenon-")
    weakref.finalize(owner, shutil.rmtree, folder, True)
    return folder


class Forms:
    """The model of a session: what it says of itself, and the libraries that it became. Thread-safe; a library is compiled
    once, and meanwhile other threads wait."""

    def __init__(self, model: str | os.PathLike | bytes, options: Mapping[str, Any], max_team: int, quiet: bool):
        self._options, self._max_team, self._quiet = options, max_team, quiet
        self._lock = threading.Lock()
        self._is_bytes = isinstance(model, bytes)
        self._forms: dict = {}  # (step, overridden, sizes) → a form, or the error of compiling it
        self._begin: dict = {}  # sizes → the step at which calls of these begin
        if self._is_bytes:
            self.path = os.path.join(folder_of(self), "model.onnx")
            with open(self.path, "wb") as file:
                file.write(model)
        else:
            self.path = os.fspath(model)
            if not os.path.exists(self.path):
                raise errors.NoSuchFile.of(
                    f"Load model from {self.path} failed:Load model {self.path} failed. File doesn't exist"
                )
            if os.path.isdir(self.path):
                raise errors.InvalidProtobuf.of(f"Load model from {self.path} failed:Protobuf parsing failed.")
        self.is_library = self._is_library()
        if self.is_library:
            form = Form(self.path, max_team)
            self._forms[_AS_IT_STANDS, (), ()] = form
            self.description = {"metadata": json.loads(form._module.runtime_module.info()).get("metadata", {})}
            self.inputs, self.outputs, self.overridable = form.inputs, form.outputs, []
            return
        self.description = self._describe(model)
        given = options.get("dims", {}), options.get("denoted_dims", {})
        declared = lambda key: [NodeArg.declared(t, *given) for t in self.description[key]]
        self.inputs, self.outputs, self.overridable = declared("inputs"), declared("outputs"), declared("overridable")
        if self.description["ir_version"] < 4:
            self.overridable = []
        self._is_open = any(i.is_open for i in self.inputs)

    def _is_library(self) -> bool:
        with open(self.path, "rb") as file:
            return file.read(4) == b"\x7fELF"

    def _describe(self, model: Any) -> dict:
        if os.path.getsize(self.path) == 0:
            raise errors.InvalidArgument.of("No graph was found in the protobuf.")
        try:
            return json.loads(_tenon.describe_model(self.path))
        except (RuntimeError, ValueError) as error:
            said = self._said(error)
            raise errors.InvalidProtobuf.of(f"Failed to load model because protobuf parsing failed: {said}") from None

    def _said(self, error: Exception) -> Exception:
        """The error, in which no file of this object's own is named."""
        text = str(error)
        if not self._is_bytes or self.path not in text:
            return error
        return type(error)(text.replace(self.path, "the model given as bytes"))

    def prepare(self) -> None:
        """Compiles for all calls. Errors: operators that are not supported, or nothing that the sizes of a call could mend."""
        if self.is_library:
            return
        error = self._form(_AS_IT_STANDS, ())
        if isinstance(error, Form):
            self._take_shapes(error)
            return
        imported = json.loads(_tenon.describe_import(self.path, self._model_options(_AS_IT_STANDS, (), {}, {})))
        unsupported = imported["unsupported"]
        said = errors.of_model(str(error), unsupported, self.description.get("opset", {}))
        if any(u["reason"] == "the operator is not supported" for u in unsupported):
            raise said
        is_of_sizes = unsupported or "weights_bytes" in imported or any(not i.is_ranked for i in self.inputs)
        if not (self._is_open and is_of_sizes) or self._fails_at_any_size():
            raise said

    def write(self, path: str) -> None:
        """The library for all calls, to a file. Errors: there is none, or the file cannot be written."""
        form = self._forms.get((_AS_IT_STANDS, (), ()))
        if not isinstance(form, Form):
            raise errors.Fail.of(f"no library is written to '{path}': the model has none for all sizes, but one for those of each call")
        try:
            shutil.copyfile(form.path, path)
        except (OSError, shutil.SameFileError) as error:
            raise errors.Fail.of(f"the library cannot be written to '{path}': {error}") from None

    def _take_shapes(self, form: Form) -> None:
        """From the library what the model does not say, and all where the caller has given sizes. Sizes are called as the
        model calls them, and those that it does not call anything are unknown."""
        names: dict[str, str] = {}
        for mine, compiled in zip(self.inputs, form.inputs):
            pairs = zip(compiled.shape, mine.shape) if len(mine.shape) == len(compiled.shape) else [(d, d) for d in compiled.shape]
            names |= {theirs: own for theirs, own in pairs if isinstance(theirs, str) and isinstance(own, str)}
        given = bool(self._options.get("shapes"))
        for mine, compiled in [*zip(self.inputs, form.inputs), *zip(self.outputs, form.outputs)]:
            if given or not mine.is_ranked:
                mine.shape, mine.is_ranked = [d if isinstance(d, int) else names.get(d) for d in compiled.shape], compiled.is_ranked

    def _fails_at_any_size(self) -> bool:
        """Whether no sizes of inputs and no numbers in them mend the model: what is wrong with it, word for word, does not
        depend on them. An attribute that there is not, a type that does not fit; not a dim that ought to be 4."""
        if any(not i.is_ranked for i in self.inputs):
            return False
        kinds = {"int32": np.int32, "int64": np.int64, "bool": np.bool_}
        common: set | None = None
        for size, number in ((2, 1), (3, 0), (1, 2), (5, -1), (1, 1)):
            sizes = {i.name: tuple(d if isinstance(d, int) else size for d in i.shape) for i in self.inputs}
            numbers = {
                i.name: np.full(sizes[i.name], number, kinds[i.of]) for i in self.inputs if i.of in kinds and np.prod(sizes[i.name]) == 1
            }
            options = self._model_options(_OF_NUMBERS, (), sizes, numbers)
            try:
                imported = json.loads(_tenon.describe_import(self.path, options))
            except (RuntimeError, ValueError):
                return False
            found = {(u["reason"], *u["nodes"]) for u in imported["unsupported"]}
            common = found if common is None else common & found
            if not common:
                return False
        return True

    @functools.cached_property
    def output_names(self) -> list[str]:
        return [o.name for o in self.outputs]

    @functools.cached_property
    def _result_types(self) -> list[str]:
        return [element_types.innermost(o.type) for o in self.outputs]

    def call(
        self, feeds: Mapping[str, Any], overridden: tuple, stop: _tenon.StopFlag | None = None, profile: Profile | None = None
    ) -> list:
        """Calls the first form that takes arrays of these sizes, until `stop` is set; what its kernels take goes to `profile`."""
        call = lambda form: self._call(form, feeds, stop, profile)
        if self._begin:  # some calls needed another form than the first
            return self._call_in_turn(call, feeds, overridden, None)
        form = fault = self._form(_AS_IT_STANDS, overridden)
        if isinstance(form, Form):
            try:
                return call(form)
            except (ValueError, MemoryError) as error:
                fault = error
        return self._call_in_turn(call, feeds, overridden, fault)

    def _call(self, form: Form, feeds: Mapping[str, Any], stop: _tenon.StopFlag | None, profile: Profile | None) -> list:
        if profile is None:
            return form.call(feeds, self._result_types, stop)
        with profile.kernels(form):
            return form.call(feeds, self._result_types, stop)

    def _call_in_turn(self, call: Callable, feeds: Mapping[str, Any], overridden: tuple, fault: Exception | None) -> list:
        """`fault`: of the first form, which need not be asked again."""
        sizes = {name: array.shape for name, array in feeds.items() if isinstance(array, np.ndarray)}
        numbers = {n: a for n, a in feeds.items() if isinstance(a, np.ndarray) and a.size == 1 and a.dtype.kind in "iub"}
        key = (overridden, *_call_key(sizes, numbers))
        begin = self._begin.get(key, _AS_IT_STANDS) if fault is None else _AS_IT_STANDS + 1
        last = _AS_IT_STANDS
        if not self.is_library and (self._is_open or overridden):
            last = _OF_NUMBERS if numbers else _OF_SIZES
        is_empty = any(0 in shape for shape in sizes.values())
        for step in range(begin, last + 1):
            if step == _MAY_BE_EMPTY and not is_empty:
                continue
            form = self._form(step, overridden, sizes, numbers)
            if not isinstance(form, Form):
                fault = form
                continue
            try:
                results = call(form)
            except (ValueError, MemoryError) as error:  # sizes that are known may need less
                fault = error
                continue
            if step != _AS_IT_STANDS:
                self._begin[key] = step
            return results
        raise fault  # of the form that knows most of this call

    def _model_options(self, step: int, overridden: tuple, sizes: Mapping, numbers: Mapping) -> _tenon.ModelOptions:
        options = _tenon.ModelOptions()
        for name, value in self._options.items():
            setattr(options, name, value)
        options.independent_dims = step >= _UNNAMED
        options.empty_sizes = step >= _MAY_BE_EMPTY
        options.inputs = list(overridden)
        if step >= _OF_SIZES:
            constant = numbers if step == _OF_NUMBERS else {}
            options.shapes = {name: [str(d) for d in shape] for name, shape in sizes.items() if name not in constant}
            options.initializers = options.initializers | {name: nd.array(a) for name, a in constant.items()}
        return options

    def _form(self, step: int, overridden: tuple, sizes: Mapping = {}, numbers: Mapping = {}) -> Form | Exception:
        of_call = _call_key(sizes, numbers if step == _OF_NUMBERS else {}) if step >= _OF_SIZES else ()
        key = (step, overridden, of_call)
        with self._lock:
            if key not in self._forms:
                # Those of sizes that have not been seen for long.
                of_calls = [k for k in self._forms if k[0] >= _OF_SIZES]
                if len(of_calls) >= _MOST_FORMS:
                    del self._forms[of_calls[0]]
                try:
                    self._forms[key] = self._compile(self._model_options(step, overridden, sizes, numbers))
                except (RuntimeError, ValueError) as error:
                    self._forms[key] = self._said(error)
            return self._forms[key]

    def _compile(self, options: _tenon.ModelOptions) -> Form:
        """In the cache, or, where there can be none, for this session alone."""
        name = "a model given as bytes" if self._is_bytes else os.path.basename(self.path)
        progress = Progress(name, self._quiet)
        options.progress = progress
        try:
            try:
                directory = _tenon.cache_directory()
            except (RuntimeError, ValueError):
                directory = folder_of(self)
            try:
                return Form(_tenon.compile_cached(self.path, directory, options), self._max_team)
            except OSError:  # its disk is full
                return Form(_tenon.compile_cached(self.path, folder_of(self), options), self._max_team)
        finally:
            progress.end()


def options_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of tenon.compile by the names of _tenon.ModelOptions."""
    from ..build_module import _level, _sizes

    options = dict(given)
    options["target"], options["opt_level"] = resolve(options.get("target")), _level(options["opt_level"])
    if "shapes" in options:
        options["shapes"] = _sizes(options["shapes"] or {})
    return options
