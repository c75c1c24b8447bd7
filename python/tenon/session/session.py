"""InferenceSession."""

from __future__ import annotations

import contextlib
import difflib
import os
import warnings
from os import PathLike
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from .. import nd
from . import errors, feeds
from .binding import IOBinding
from .enumerations import GraphOptimizationLevel
from .forms import Forms, folder_of, options_of
from .options import RunOptions, SessionOptions
from .parameters import ModelMetadata, NodeArg
from .profile import Profile
from .values import OrtDevice, OrtValue, OrtValueVector

PROVIDERS = ["CPUExecutionProvider"]
_LEVELS = {GraphOptimizationLevel.ORT_DISABLE_ALL: 0, GraphOptimizationLevel.ORT_ENABLE_BASIC: 1}
_WARNING = 2  # of log_severity_level: the least at which nothing is said of compiling is above it
_COMPILE_OPTIONS = ("target", "shapes", "precision", "opt_level", "jobs")
_NEARLY = 0.8  # difflib's ratio of a name to one that is meant: a letter or two of it differ


class InferenceSession:
    """A model to be run: an ONNX file, its bytes, or a compiled library.

    A model is compiled when the session is made, or found in the cache (TENON_CACHE_DIR), by `sess_options` and, beyond what
    ONNX Runtime takes, by tenon.compile's `target`, `shapes`, `precision`, `opt_level` and `jobs`. Where its open sizes keep it from
    being compiled for all calls, it is compiled for those of a call, when it comes. Calls may run at the same time on
    several threads, without Python's lock."""

    def __init__(
        self,
        path_or_bytes: str | PathLike | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence | None = None,
        provider_options: Sequence[Mapping] | None = None,
        **kwargs: Any,
    ):
        if not isinstance(path_or_bytes, (str, bytes, PathLike)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        is_bytes = isinstance(path_or_bytes, bytes)
        self._model_path = None if is_bytes else os.fspath(path_or_bytes)
        self._model_bytes = path_or_bytes if is_bytes else None
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"InferenceSession(): expected SessionOptions but got {type(sess_options).__name__}")
        self._sess_options = sess_options if sess_options is not None else SessionOptions()
        if self._sess_options._is_canceled:
            raise errors.ModelLoadCanceled.of("Loading the model was canceled by the session's options.")
        _check_names(kwargs)
        self._provider_options = _check_providers(providers, provider_options)
        options = self._sess_options
        self._profile = Profile(options.profile_file_prefix) if options.enable_profiling else None
        compile_options = {key: kwargs[key] for key in _COMPILE_OPTIONS if kwargs.get(key) is not None}
        compile_options.setdefault("opt_level", _LEVELS.get(options.graph_optimization_level, 2))
        compile_options["dims"] = dict(options._dims)
        compile_options["denoted_dims"] = dict(options._denoted_dims)
        compile_options["time_kernels"] = options.enable_profiling
        initializers = options._arrays()
        if initializers:
            compile_options["initializers"] = {name: nd.array(array) for name, array in initializers.items()}
            compile_options["spare_initializers"] = sorted(options._spare)
        folder = options._entries.get("session.model_external_initializers_file_folder_path", "")
        if is_bytes:
            # External data of a model in memory is looked for in the current folder, as ONNX Runtime does.
            compile_options["external_data_dir"] = folder or os.getcwd()
        if options._files:
            compile_options["external_data_dir"] = self._folder_of(options._files)
        quiet = options.log_severity_level > _WARNING
        with self._span("session_initialization"):
            self._forms = Forms(
                path_or_bytes, options_of(compile_options), options.intra_op_num_threads, quiet
            )
            self._forms.prepare()
        if options.optimized_model_filepath:
            self._forms.write(options.optimized_model_filepath)

    def _folder_of(self, files: Mapping[str, bytes]) -> str:
        """A folder with these files that goes with this. Errors: a name that leads out of it."""
        folder = folder_of(self)
        for name, content in files.items():
            path = os.path.normpath(os.path.join(folder, name))
            if not path.startswith(folder + os.sep):
                raise errors.InvalidArgument.of(f"expected the name of a file beside the model but got '{name}'")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        return folder

    def __repr__(self) -> str:
        names = (", ".join(p.name for p in parameters) for parameters in (self.get_inputs(), self.get_outputs()))
        return "<tenon.InferenceSession of {} -> {}>".format(*names)

    def _span(self, name: str) -> Any:
        return self._profile.span(name) if self._profile else contextlib.nullcontext()

    # What the model says of itself.

    def get_inputs(self) -> list[NodeArg]:
        return list(self._forms.inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._forms.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Initializers that the graph lists among its inputs: feeds may have values for them."""
        return list(self._forms.overridable)

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self._forms.description)

    # The same under the names that programs reach through to, where ONNX Runtime keeps it and its bindings' session.

    _inputs_meta = property(get_inputs)
    _outputs_meta = property(get_outputs)
    _overridable_initializers = property(get_overridable_initializers)
    _model_meta = property(get_modelmeta)
    _sess = property(lambda self: self)

    # How it is run.

    def get_session_options(self) -> SessionOptions:
        return self._sess_options

    def get_providers(self) -> list[str]:
        return list(PROVIDERS)

    def get_provider_options(self) -> dict[str, dict]:
        return {name: dict(self._provider_options.get(name, {})) for name in PROVIDERS}

    def set_providers(self, providers: Sequence | None = None, provider_options: Sequence[Mapping] | None = None) -> None:
        """The CPU is the only one. Errors: a name that is none of ONNX Runtime's."""
        names = [_provider(p)[0] for p in providers or []]
        for name in names:
            if name not in PROVIDERS:
                raise RuntimeError(f"Unknown Provider Type: {name}")
        self._provider_options = _check_providers(providers, provider_options)

    def disable_fallback(self) -> None:
        """Without effect: there is one provider."""

    def enable_fallback(self) -> None:
        """Without effect: there is one provider."""

    # Calls.

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list:
        """The outputs of these names, all where none are given. Arrays have to be of the inputs' types, of any strides; lists
        and numbers become so. The results' memory is their own.

        Errors: ValueError where an input is missing; InvalidArgument for a name, type or shape that is not the model's;
        where the call fails, what ONNX Runtime raises for it: InvalidArgument for indices, Fail for sizes, else RuntimeException."""
        return self._run(output_names, input_feed, run_options)

    def _run(self, output_names: Any, input_feed: Any, run_options: Any) -> list:
        if not hasattr(input_feed, "keys"):
            raise AttributeError(f"'{type(input_feed).__name__}' object has no attribute 'keys'")
        if isinstance(output_names, str) or not all(isinstance(name, str) for name in output_names or ()):
            raise TypeError(f"run(): expected a sequence of names of outputs but got {output_names!r}")
        if run_options is not None and not isinstance(run_options, RunOptions):
            raise TypeError(f"run(): expected RunOptions but got {type(run_options).__name__}")
        if run_options is not None and run_options.terminate:
            raise errors.Fail.of("Exiting due to terminate flag being set to true.")
        forms = self._forms
        arrays, overridden = feeds.arrays_of(input_feed, forms.inputs, forms.overridable)
        known = forms.output_names
        for name in output_names or ():
            if name not in known:
                raise errors.InvalidArgument.of(f"Invalid output name:{name}")
        try:
            stop = run_options._stop if run_options is not None else None
            if self._profile:
                with self._profile.span("model_run"):
                    results = forms.call(arrays, overridden, stop, self._profile)
            else:
                results = forms.call(arrays, overridden, stop)
        except (ValueError, TypeError, IndexError, MemoryError, RuntimeError) as error:
            if run_options is not None and run_options.terminate:
                raise errors.Fail.of("Exiting due to terminate flag being set to true.") from error
            raise errors.of_call(error) from error
        if not output_names:
            return results
        by_name = dict(zip(known, results))
        return [by_name[name] for name in output_names]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable,
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs on a thread of its own, which calls `callback(results, user_data, error)`; the error is "" where there is none."""
        import threading

        def call() -> None:
            results, text = [], ""
            try:
                results = self._run(output_names, input_feed, run_options)
            except Exception as error:
                text = str(error)
            callback(results, user_data, text)

        threading.Thread(target=call, daemon=True).start()

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: RunOptions | None = None
    ) -> list[OrtValue]:
        return [OrtValue(v) for v in self._run(output_names, input_dict_ort_values, run_options)]

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[OrtDevice] = (),
    ) -> None:
        """Appends the results to `fetches`."""
        if len(feed_names) != len(feeds):
            raise errors.InvalidArgument.of(f"expected a value for each of {len(feed_names)} names but got {len(feeds)}")
        for result in self._run(fetch_names, dict(zip(feed_names, feeds)), run_options):
            fetches.push_back(OrtValue(result))

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        iobinding._run(run_options)

    # Traces.

    def end_profiling(self) -> str:
        """Writes the trace that SessionOptions.enable_profiling asked for; its path, "" where nobody asked or it is written
        already."""
        return self._profile.end() if self._profile else ""

    def get_profiling_start_time_ns(self) -> int:
        return self._profile.start_ns if self._profile else 0


def _check_names(given: Mapping[str, Any]) -> None:
    """Errors: one that is nearly an argument of Tenon's. Other names are ONNX Runtime's, which takes any."""
    for name in given:
        if name not in _COMPILE_OPTIONS and (meant := difflib.get_close_matches(name, _COMPILE_OPTIONS, 1, _NEARLY)):
            raise TypeError(f"InferenceSession(): got an unexpected keyword argument '{name}'; is '{meant[0]}' meant?")


def _provider(given: Any) -> tuple[str, Mapping]:
    if isinstance(given, str):
        return given, {}
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], Mapping):
        return given
    raise ValueError("'providers' values must be either strings or (string, dict) tuples.")


def _check_providers(providers: Sequence | None, options: Sequence[Mapping] | None) -> dict[str, Mapping]:
    """The options by name; a warning for what is not here, in whose place the CPU is taken."""
    chosen: dict[str, Mapping] = {}
    try:
        if options and providers and len(options) != len(providers):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        for i, given in enumerate(providers or []):
            name, own = _provider(given)
            if name not in PROVIDERS:
                warnings.warn(
                    f"Specified provider '{name}' is not in available provider names. Available providers: "
                    f"'{', '.join(PROVIDERS)}'",
                    stacklevel=3,
                )
                continue
            chosen[name] = options[i] if options else own
    except ValueError as error:
        warnings.warn(f"{error} Falling back to {PROVIDERS}.", stacklevel=3)
    return chosen
