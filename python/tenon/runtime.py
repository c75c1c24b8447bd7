"""Compiled code: modules and their functions."""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import tarfile
import tempfile
import time
from typing import Any, Callable

from . import _arguments, _left_out, _tenon, _values
from ._tenon import Device, Function, Parameter, StopFlag

__all__ = ["DeviceModule", "Function", "Module", "Parameter", "StopFlag", "load_module"]


class Module:
    """Code that was built or loaded. Calling it calls its entry: `main`, or its only function."""

    def __init__(self, library: Any = None, loaded: Any = None, path: str = ""):
        self._library = library
        self._loaded = loaded
        self._path = path
        self._functions: dict = {}
        self._imports: list = []
        self._entry = None
        self._signatures: dict | None = None

    @property
    def runtime_module(self) -> Any:
        """The code, loaded into this process at the first question."""
        if self._loaded is None:
            self._loaded = self._library.module()
        return self._loaded

    def _signature(self, name: str) -> dict | None:
        """The function's inputs and outputs; None where that is not known."""
        if self._signatures is None:
            functions = json.loads(self.runtime_module.info()).get("functions", [])
            self._signatures = {f["name"]: f for f in functions}
            if len(functions) == 1:
                self._signatures["main"] = functions[0]
        return self._signatures.get(name)

    def _function(self, name: str) -> Function | _values.Function:
        signature = self._signature(name)
        if signature is None:
            return self.runtime_module.get_function(name, None)
        if _values.has_values(signature):
            return _values.Function(self.runtime_module.get_function(name, None, True), signature)
        # A network has no numbers that are passed by value: what has no shape is of any rank.
        is_network = signature.get("makes_outputs", False)
        return self.runtime_module.get_function(name, ["shape" not in i and not is_network for i in signature["inputs"]])

    def get_function(self, name: str, query_imports: bool = False) -> Function:
        """The function that the library exports. A network has those by which TVM's programs run one, too: "default"(device)
        gives a contrib.graph_executor.GraphModule, and "vm_load_executable"(), "vm_initialization"(…) and "main" are those
        of Relax's virtual machine."""
        if name not in self._functions:
            try:
                self._functions[name] = self._function(name)
            except ValueError:
                for module in self._imports if query_imports else []:
                    if isinstance(module, DeviceModule):
                        continue
                    try:
                        return module.get_function(name, True)
                    except ValueError:
                        continue
                if name not in _EXECUTORS:
                    raise
                self._functions[name] = _EXECUTORS[name](self)
        return self._functions[name]

    __getitem__ = get_function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if text := _left_out.sentence(f"Module.{name}"):
            raise NotImplementedError(text)
        try:
            return self.get_function(name)
        except ValueError as error:
            raise AttributeError(str(error)) from None

    @property
    def type_key(self) -> str:
        """What the code is: "llvm" or "c" of the CPU that it was built for (a GPU's is in imported_modules), "library" where it
        was loaded."""
        if self._library is None:
            return "library"
        return (str(self._library.target).partition(" -host=")[2] or self._library.target.kind).split()[0]

    entry_name = "main"

    @property
    def entry_func(self) -> Function:
        if self._entry is None:
            self._entry = self.get_function("main")
        return self._entry

    def __call__(self, *args: Any) -> Any:
        return self.entry_func(*args)

    def __repr__(self) -> str:
        if self._library is None:
            return f"<tenon.runtime.Module from '{self._path}'>"
        return f"<tenon.runtime.Module of {', '.join(self._library.functions)}, target {self._library.target.kind}>"

    @property
    def inputs(self) -> list:
        return self.runtime_module.inputs()

    @property
    def outputs(self) -> list:
        return self.runtime_module.outputs()

    @property
    def remarks(self) -> list:
        """What the compiler did by itself, such as binding loops to threads, or could not do."""
        return self._library.remarks if self._library is not None else []

    def import_module(self, module: Module | DeviceModule) -> None:
        """Functions that this module lacks are looked for in imported ones. Device code may be imported too: a library
        carries its own, so that this only keeps them together."""
        if not isinstance(module, (Module, DeviceModule)):
            raise TypeError("what is imported is a module")
        self._imports.append(module)

    @property
    def imported_modules(self) -> list:
        """The device's part of a module for a GPU, then what was imported."""
        own = [DeviceModule(self._library)] if self._library is not None and self._library.device_forms else []
        return own + self._imports

    def _built(self) -> Any:
        if self._library is None:
            raise ValueError(f"the module was loaded from '{self._path}': its source is not at hand")
        return self._library

    def get_source(self, fmt: str = "") -> str:
        """"c" (of target c), "cuda", "ptx" (of a GPU), "llvm" (or "ll"), "asm" (or "s"; both of a GPU's host), or loop IR
        as built ("tir") or "lowered"; what the target's is, if nothing is said."""
        return self._built().get_source(fmt)

    def export_library(self, file_name: str | os.PathLike, fcompile: Callable | None = None, **options: Any) -> None:
        """A shared library that needs libc alone; in a tar where the name ends so. With `fcompile`, a linker such as
        contrib.cc.create_shared, or options of that (cc=, options=), what it makes of the object."""
        name = os.fspath(file_name)
        if fcompile is not None or options:
            from .contrib import cc

            with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
                file = os.path.join(folder, "lib.o")
                self._built().save(file)
                (fcompile or cc.create_shared)(name, [file], **options)
        elif name.endswith(".tar"):
            self._built().save(name)
        else:
            self._built().export_library(name)

    def export_to_c(self, file_name: str | os.PathLike, function_name: str = "") -> None:
        """For C programs: an object (or, where the name ends in .c, C11 source) and the header beside it. A
        single function may be given another name."""
        self._built().export_to_c(os.fspath(file_name), function_name)

    def save(self, file_name: str | os.PathLike, fmt: str = "") -> None:
        """The name's end says what: .so, .o (for contrib.cc.create_shared), .tar, .c, .ll, .s, .tir; of a GPU .cu, .ptx,
        .cubin."""
        name = os.fspath(file_name)
        self._built().save(f"{name}.{fmt}" if fmt and not name.endswith("." + fmt) else name)

    def time_evaluator(self, func_name: str, dev: Device | None = None, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0):
        """A function that measures calls with given arguments: .mean and .results, in seconds a call, the work that they
        queue on `dev` included."""
        if min(number, repeat) < 1:
            raise ValueError(
                f"time_evaluator: expected at least 1 for 'number' and 'repeat' but got {number} and {repeat}"
            )
        function = self.get_function(func_name)
        wait = dev.sync if dev is not None else lambda: None

        def evaluate(*args: Any) -> "TimeResult":
            function(*args)
            results = []
            for _ in range(repeat):
                count = number
                while True:
                    wait()
                    start = time.perf_counter()
                    for _ in range(count):
                        function(*args)
                    wait()
                    elapsed = time.perf_counter() - start
                    if elapsed * 1e3 >= min_repeat_ms:
                        break
                    count *= 2
                results.append(elapsed / count)
            return TimeResult(results)

        return evaluate


def _graph_executor(module: Module) -> Any:
    from .contrib.graph_executor import GraphModule

    return lambda device=None: GraphModule._of(module, device)


# What TVM's programs ask a network for and no library exports.
_EXECUTORS = {
    "default": _graph_executor,
    "vm_load_executable": lambda module: lambda: module,
    "vm_initialization": lambda module: lambda *devices: None,  # tensors say where they are
}


class DeviceModule:
    """The kernels of a module for a GPU: of one that was built, or a file of them."""

    def __init__(self, library: Any = None, path: str = ""):
        self._library = library
        self._path = path

    def __repr__(self) -> str:
        return f"<tenon.runtime.DeviceModule of {self.type_key}>"

    @property
    def type_key(self) -> str:
        """What runs it: "cuda", "opencl"."""
        if self._library is not None:
            return self._library.target.kind
        return "opencl" if self._path.endswith(".cl") else "cuda"

    def get_source(self, fmt: str = "") -> str:
        if self._library is not None:
            return self._library.get_source(fmt)
        if self._path.endswith(".cubin"):
            raise ValueError(f"'{self._path}' is machine code: its source is not at hand")
        with open(self._path, encoding="utf-8") as file:
            return file.read()

    def save(self, file_name: str | os.PathLike, fmt: str = "") -> None:
        """The name's end says what: .cu, .ptx, .cubin, .cl."""
        name = os.fspath(file_name)
        name = f"{name}.{fmt}" if fmt and not name.endswith("." + fmt) else name
        if self._library is not None:
            self._library.save(name)
        else:
            shutil.copyfile(self._path, name)


class TimeResult:
    def __init__(self, results: list):
        self.results = results
        self.mean = sum(results) / len(results)
        self.median = sorted(results)[len(results) // 2]
        self.min = min(results)
        self.max = max(results)

    def __repr__(self) -> str:
        return f"TimeResult(mean={self.mean:.3e} s, min={self.min:.3e} s)"


def load_module(path: str | os.PathLike) -> Module:
    """A library that Tenon compiled, or a .tar of one; an object (.o) is linked first. Of a file of device code (.ptx,
    .cubin, .cu, .cl) a DeviceModule."""
    path = os.fspath(path)
    if path.endswith((".ptx", ".cubin", ".cu", ".cl")):
        _check_device_code(path)
        return DeviceModule(path=path)
    if path.endswith(".o"):
        from .contrib import cc

        cc.create_shared(path + ".so", path)
        path += ".so"
    if not path.endswith(".tar"):
        return Module(loaded=_tenon.load(path), path=path)
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        library = os.path.join(folder, "deploy_lib.so")
        try:
            with tarfile.open(path) as archive, open(library, "wb") as file:
                with archive.extractfile("deploy_lib.so") as content:
                    shutil.copyfileobj(content, file)
        except (KeyError, tarfile.TarError):
            raise RuntimeError(
                f"cannot load '{path}': it is no archive with a deploy_lib.so, as Module.save writes it"
            ) from None
        # The file may go: the loader has it open.
        return Module(loaded=_tenon.load(library), path=path)


def _check_device_code(path: str) -> None:
    """That the file is there and what its name says; the driver reads the rest when it is launched."""
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    if path.endswith(".cubin"):
        what, good = "machine code of a GPU", head.startswith(b"\x7fELF") and len(head) >= 64 and head[18:20] == b"\xbe\0"
    else:
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError:
            text = "\0"
        good = "\0" not in text and bool(text.strip())
        what = {"x": "PTX", "u": "CUDA C++", "l": "OpenCL C"}[path[-1]]
        if path.endswith(".ptx"):
            good = good and re.search(r"^\s*\.version\s+\d", text, re.M) is not None
    if not good:
        raise ValueError(f"cannot load '{path}': it is not {what}")


__getattr__ = _left_out.names_of("runtime.", __name__)
_arguments.say_clearly(globals())
