import ctypes
import fcntl
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

import harness
from harness import Case, DONE, INPUT, LIMIT, USAGE, reference

sys.path.insert(0, str(harness.ROOT / "test" / "error"))
import make_models  # noqa: E402


class Files(Case):
    """Files that are in the way, odd or broken, and streams that are closed or full."""

    def copy(self, model):
        for file in harness.models.glob(f"{model}.*"):
            shutil.copy(file, self.dir)
        return self.path(f"{model}.onnx")

    def run_tool(self, *args, **options):
        return subprocess.run([harness.options.build / "bin" / "tenon", *map(str, args)], timeout=300, **options)

    def write_model(self, name, *args):
        (self.dir / name).write_bytes(make_models.model(*args))
        return self.path(name)

    def test_outputs_that_are_inputs(self):
        model, weights = self.copy("bert-tiny"), self.path("bert-tiny.weights")
        os.symlink(weights, self.path("link.so"))
        os.link(model, self.path("other.so"))
        contents = {p.name: p.read_bytes() for p in self.dir.iterdir()}
        for output in [weights, self.path("link.so"), self.path("other.so"), f"{self.dir}/./bert-tiny.weights"]:
            _, err = self.tenon("compile", model, "-o", output, status=INPUT)
            self.assertIn("a file that the model is read from", err)
        _, err = self.tenon("compile", model, "-o", model, status=INPUT)
        self.assertIn("it does not end as a library", err)
        os.rename(weights, self.path("m.params"))
        os.symlink("m.params", weights)
        _, err = self.tenon("compile", model, "-o", self.path("m.so"), "--params", "separate", status=INPUT)
        self.assertIn("m.params', a file that the model is read from", err)
        os.rename(self.path("m.params"), weights)
        _, err = self.tenon("bench", model, "--json", model, "--repeat", "1", status=INPUT)
        self.assertIn(", a file that is read", err)
        np.save(self.path("x.npy"), np.zeros((1, 4), np.float32))
        _, err = self.tenon("run", self.compile("mlp-4-2"), "-i", self.path("x.npy"), "-o", self.path("x.npy"), status=INPUT)
        self.assertIn(", a file that is read", err)
        os.remove(self.path("model.so"))
        os.remove(self.path("x.npy"))
        self.assertEqual({p.name: p.read_bytes() for p in self.dir.iterdir() if p.name != "cache"}, contents)

    def test_leftovers_of_the_dead(self):
        """What a killed process left of this output is removed by the next one, and nothing else is."""
        leftover = [self.path(f"m.so.tmp-{pid}-3") for pid in [1, os.getpid(), 999_999_999]]
        others = [self.path(name) for name in ["m.so.tmp-", "m.so.tmp-1-x", "m.so.tmp-mine", "n.so.tmp-1-1", "m.so.tmp-1-2-3"]]
        for path in leftover + others:
            pathlib.Path(path).touch()
        with open(leftover[1]) as alive:
            fcntl.flock(alive, fcntl.LOCK_EX)
            self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"))
        self.assert_only("m.so", *[pathlib.Path(p).name for p in others + [leftover[1]]])

    def test_killed_processes_leave_little(self):
        for attempt in range(6):
            process = subprocess.Popen([harness.options.build / "bin" / "tenon", "compile", self.model("bert-tiny"), "-o",
                                        self.path("folder") + "/"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.1 + 0.1 * attempt)
            process.send_signal(signal.SIGKILL)
            process.wait()
            folder = self.dir / "folder"
            self.assertTrue(not folder.exists() or any(folder.iterdir()), "an empty folder is left")
        self.compile("bert-tiny", "folder/")
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["inference_example.cpp", "metadata.json", "model.so"])

    def test_killed_between_two_renames(self):
        """Of several files of an output, the next process that writes beside them puts those in place that are left."""
        source = self.dir / "kill.c"
        source.write_text("""#define _GNU_SOURCE
            #include <dlfcn.h>
            #include <signal.h>
            #include <stdlib.h>
            #include <sys/types.h>
            #include <unistd.h>
            int rename(const char* from, const char* to) {
              static int done;
              if (done++ == atoi(getenv("RENAMES"))) kill(getpid(), SIGKILL);
              return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(from, to);
            }
            """)
        subprocess.run([harness.options.cc, "-shared", "-fPIC", "-o", self.path("kill.so"), source, "-ldl"], check=True)
        names = ["m.h", "m.params", "m.so"]

        def compile(model, renames=None, out="out"):
            killing = {"LD_PRELOAD": self.path("kill.so"), "RENAMES": str(renames), "ASAN_OPTIONS": "verify_asan_link_order=0"}
            return self.run_tool("compile", self.model(model), "-o", self.path(f"{out}/m.so"), "--params", "separate", "--name", "m",
                                 "-q", env={**os.environ, **(killing if renames is not None else {})}).returncode

        def contents(folder):
            return {path.name: path.read_bytes() for path in (self.dir / folder).iterdir()}

        (self.dir / "out").mkdir()
        (self.dir / "new").mkdir()
        self.assertEqual(compile("bert-tiny", out="new"), DONE)
        new = contents("new")
        self.assertEqual(sorted(new), names)
        for renames in range(len(names)):
            self.assertEqual(compile("mlp-4-2"), DONE)
            self.assertEqual(compile("bert-tiny", renames), -signal.SIGKILL)
            if renames > 0:
                self.assertNotEqual({name: data for name, data in contents("out").items() if name in names}, new)
            self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("out/other.so"), "-q")
            os.remove(self.path("out/other.so"))
            self.assertEqual(contents("out"), new)
        self.assertEqual(compile("bert-tiny", len(names)), DONE)

    def test_a_folder_is_made_last(self):
        """A model that is refused leaves no folder."""
        (self.dir / "bad.onnx").write_bytes(make_models.model([make_models.node("Frobnicate", "x", "y")], [make_models.X]))
        self.tenon("compile", self.path("bad.onnx"), "-o", self.path("a/b/"), status=INPUT)
        self.assert_only("bad.onnx")
        self.compile("mlp-4-2", "a/b/")
        self.assertTrue((self.dir / "a/b/model.so").exists())

    def test_long_names(self):
        longest = 255
        library = self.path("l" * (longest - 3) + ".so")
        self.tenon("compile", self.model("mlp-4-2"), "-o", library)
        self.tenon("run", library, "--fill", "ones")
        model = self.copy("mlp-4-2")
        long = self.path("m" * (longest - 5) + ".onnx")
        os.rename(model, long)
        self.tenon("run", long, "--fill", "ones")
        _, err = self.tenon("compile", long, "-o", self.path("l" * (longest - 2) + ".so"), status=INPUT)
        self.assertIn("File name too long", err)

    def test_damaged_entries_of_the_cache(self):
        """They are made again, whatever is wrong with them."""
        self.tenon("run", self.model("mlp-4-2"), "--fill", "ones")
        (entry,) = (self.dir / "cache").glob("*.so")
        whole = entry.read_bytes()
        code = len(whole) // 2
        for content in [b"", whole[:1000], b"text", whole[:-1], whole[:code] + bytes([whole[code] ^ 255]) + whole[code + 1:]]:
            entry.write_bytes(content)
            _, err = self.tenon("run", self.model("mlp-4-2"), "--fill", "ones")
            self.assertIn("compiling it again", err)
            self.assertEqual(entry.read_bytes(), whole)
        _, err = self.tenon("run", self.model("mlp-4-2"), "--fill", "ones")
        self.assertEqual(err, "")

    def test_no_cache(self):
        for environment in [{"TENON_CACHE_DIR": "/dev/null/cache"}, {"TENON_CACHE_DIR": "/proc"}, {"TENON_CACHE_DIR": "", "HOME": ""}]:
            out, err = self.tenon("run", self.model("mlp-4-2"), "--fill", "ones", env={**environment, "TMPDIR": str(self.dir)})
            self.assertIn("compiling for this call alone", err)
            self.assertIn("output: float32 1x2", out)
            self.assert_only()

    def test_code_of_kernels_is_kept(self):
        """For the next time, unless nothing is to be kept or can be."""
        kept = lambda: list((self.dir / "cache/kernels").glob("*/*"))
        compiled = lambda *more, **env: (self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "-q", *more, env=env), (self.dir / "m.so").read_bytes())
        _, anew = compiled("--no-cache")
        self.assertEqual(kept(), [])
        _, first = compiled()
        self.assertNotEqual(kept(), [])
        times = {p: p.stat().st_ino for p in kept()}
        _, second = compiled()
        self.assertEqual({p: p.stat().st_ino for p in kept()}, times)
        self.assertEqual({anew, first, second}, {anew})
        for path in kept():
            path.write_bytes(path.read_bytes()[:-1])
        self.assertEqual(compiled()[1], anew)
        out, _ = self.tenon("cache")
        self.assertIn(f"code of kernels: {len(times)} entries", out)
        self.tenon("cache", "--clear")
        self.assertEqual(kept(), [])
        for environment in [{"TENON_CACHE_DIR": "/dev/null/cache"}, {"TENON_CACHE_DIR": "/proc"}, {"TENON_CACHE_DIR": "", "HOME": ""}]:
            (_, err), bytes_now = compiled(**environment)
            self.assertEqual((err, bytes_now), ("", anew))
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), env={"TENON_CACHE_SIZE": "large"})
        self.assertIn("TENON_CACHE_SIZE is 'large'; expected a size", err)
        self.assertIn("kernels are not kept", err)

    def test_the_cache_has_a_size(self):
        """What was not used for longest goes; what is used stays."""
        run = lambda *more, **env: self.tenon("run", self.model("mlp-4-2"), "--fill", "ones", *more, env=env)
        kept = lambda: {p.name for p in (self.dir / "cache").glob("*.so")}
        run("-O0")
        (first,) = kept()
        run("-O1")
        (second,) = kept() - {first}
        for name, age in ((first, 3000), (second, 2000)):
            for path in (self.dir / "cache").glob(name + "*"):
                os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
        run("-O0")
        size = max((self.dir / "cache" / name).stat().st_size for name in (first, second))
        run("-O2", TENON_CACHE_SIZE=str(2 * size + size // 2))
        self.assertIn(first, kept())
        self.assertNotIn(second, kept())
        out, _ = self.tenon("cache", "--list")
        self.assertIn(first, out)
        self.assertIn("2 libraries", out)
        self.tenon("cache", "--clear")
        self.assertEqual(kept(), set())
        _, err = run(TENON_CACHE_SIZE="large")
        self.assertIn("TENON_CACHE_SIZE is 'large'; expected a size", err)
        self.assertIn("compiling for this call alone", err)

    def test_a_full_cache(self):
        disk = self.dir / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode != 0:
            self.skipTest("needs to mount a small disk")
        try:
            out, err = self.tenon("run", self.model("mlp-4-2"), "--fill", "ones", env={"TENON_CACHE_DIR": str(disk)})
            self.assertIn("compiling for this call alone", err)
            self.assertIn("output: float32 1x2", out)
            self.assertEqual([p.name for p in disk.iterdir() if p.suffix == ".so"], [])
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_special_files(self):
        """They are named, and nobody waits for them."""
        os.mkfifo(self.path("pipe"))
        for name in ["pipe.npz", "pipe.npy", "pipe.so", "pipe.onnx"]:
            os.mkfifo(self.path(name))
        (self.dir / "folder.npy").mkdir()
        library = self.compile("mlp-4-2")
        for args, kind in [(["run", self.path("pipe")], "a pipe"), (["inspect", self.path("pipe.so")], "a pipe"),
                           (["bench", self.path("pipe.onnx")], "a pipe"), (["run", "/dev/zero"], "a device"),
                           (["run", str(self.dir)], "a directory"), (["inspect", "/"], "a directory"),
                           (["compile", self.path("pipe.onnx"), "-o", self.path("m.so")], "a pipe"),
                           (["compile", "/dev/null", "-o", self.path("m.so")], "a device"),
                           (["compile", self.model("mlp-4-2"), "-o", self.path("pipe")], "a pipe"),
                           (["compile", self.model("mlp-4-2"), "-o", "/dev/null"], "a device"),
                           (["compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--prices", self.path("pipe")], "a pipe"),
                           (["run", library, "-i", self.path("pipe.npz")], "a pipe"),
                           (["run", library, "-i", self.path("pipe.npy")], "a pipe"),
                           (["run", library, "-i", self.path("folder.npy")], "a directory"),
                           (["run", library, "--fill", "ones", "--expect", self.path("pipe.npz")], "a pipe")]:
            _, err = self.tenon(*args, status=INPUT)
            self.assertIn(f"is {kind}", err)

    def test_streams_closed_or_full(self):
        library = self.compile("mlp-4-2")
        name = pathlib.Path(library).name  # which the library holds
        compile = ["compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--soname", name]
        wanted = pathlib.Path(library).read_bytes()
        for verb in [compile, ["run", library, "--fill", "ones", "-o", self.path("y.npz")], ["inspect", library], ["--version"], ["--help"]]:
            with open("/dev/full", "wb") as full:
                self.assertEqual(self.run_tool(*verb, stderr=full, stdout=subprocess.DEVNULL).returncode, DONE, verb)
                done = self.run_tool(*verb, stdout=full, stderr=subprocess.PIPE, text=True)
            # Of `run -o` nothing is printed.
            self.assertEqual(done.returncode, DONE if "-o" in verb and "run" in verb else INPUT, done.stderr)
            if done.returncode == INPUT:
                self.assertIn("cannot write to standard output: No space left on device", done.stderr)
            for closed in [(2,), (1,), (0, 1, 2)]:
                shut = lambda: [os.close(fd) for fd in closed]
                status = self.run_tool(*verb, preexec_fn=shut, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
                prints = 1 in closed and not ("-o" in verb and "run" in verb)
                self.assertEqual(status, INPUT if prints else DONE, (verb, closed))
            if verb is compile:
                self.assertEqual(pathlib.Path(self.path("m.so")).read_bytes(), wanted)
        _, err = self.tenon("run", self.path("none.so"), status=INPUT)
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.run_tool("run", self.path("none.so"), stderr=full).returncode, INPUT)

    def test_numbers(self):
        library = self.compile("mlp-4-2")
        for option, values in [("--duration", ["nan", "inf", "-1", "1e999"]), ("--repeat", ["0", "-1", "nan"]), ("--warm-up", ["-1", "nan"])]:
            for value in values:
                _, err = self.tenon("bench", library, f"{option}={value}", status=USAGE)
                self.assertRegex(err, f"expected a number of at least [01] but got '{value}'|could not convert|Could not convert")
                self.assertLess(len(err), 200)
        for option in ["--rtol", "--atol"]:
            self.tenon("run", library, "--fill", "ones", "--expect", "x.npz", f"{option}=nan", status=USAGE)

    def test_names_that_terminals_obey(self):
        red = "\x1b[31m\x7f\u009b2Jred"
        model = self.write_model("named.onnx", [make_models.node("Relu", [red], ["y"], name=red)], [make_models.value(red, 1, 4)], ["y"])
        refused = self.write_model("refused.onnx", [make_models.node("Frobnicate" + red, [red], ["y"], name=red)],
                                   [make_models.value(red, 1, 4)], ["y"])
        library = self.path("m.so")
        texts = [*self.tenon("compile", model, "-o", library), *self.tenon("inspect", model), *self.tenon("inspect", library),
                 *self.tenon("inspect", refused, status=INPUT), *self.tenon("compile", refused, "-o", library, status=INPUT),
                 *self.tenon("run", library, status=INPUT), *self.tenon("run", self.path(red + ".so"), status=INPUT),
                 *self.tenon("compile", model, "-o", library, "--shape", red + ":x", status=USAGE)]
        for text in texts:
            self.assertFalse(set(text) & set("\x1b\x7f\u009b"), text)

    def test_many_outputs_and_inputs(self):
        """Code grows with their number, not with its square: so many lines of LLVM for each, and so many bytes."""
        n, lines_each, most_bytes = 1000, 30, 500_000
        names, inputs = [f"y{i}" for i in range(n)], [f"x{i}" for i in range(n)]

        def compile(name, nodes, graph_inputs, outputs):
            model = self.write_model(f"{name}.onnx", nodes, graph_inputs, outputs)
            self.tenon("compile", model, "-o", self.path(f"{name}.so"), "--emit", "llvm")
            self.assertLess(len(pathlib.Path(self.path(f"{name}.so.ll")).read_text().splitlines()), lines_each * n)
            self.assertLess(os.path.getsize(self.path(f"{name}.so")), most_bytes)
            return self.path(f"{name}.so")

        split = [make_models.node("Relu", "x", name, name=f"n{i}") for i, name in enumerate(names)]
        self.tenon("run", compile("out", split, [make_models.value("x", 4)], names), "--fill", "ones", "-o", self.path("y.npz"))
        found = np.load(self.path("y.npz"))
        self.assertEqual(sorted(found.files), sorted(names))
        self.assertTrue(all((found[name] == 1).all() for name in names))
        for sizes in [[1 + i % 3 for i in range(n)], [4] * n]:
            library = compile("in", [make_models.node("Concat", inputs, "y", axis=0)],
                              [make_models.value(name, size) for name, size in zip(inputs, sizes)], ["y"])
            arrays = {name: np.arange(size, dtype=np.float32) + i for i, (name, size) in enumerate(zip(inputs, sizes))}
            self.tenon("run", library, "-i", self.save("x.npz", arrays), "--expect",
                       self.save("want.npz", {"y": np.concatenate(list(arrays.values()))}))

    def test_small_floats(self):
        """float16 and bfloat16 arrays go in and come out."""
        float16, bfloat16 = 10, 16
        x = np.array([[1.5, -2.0, 65504.0, 6e-8]], np.float16)
        model = self.write_model("half.onnx", [make_models.node("Relu", "x", "y")], [make_models.value("x", 1, 4, elem=float16)],
                                 [make_models.untyped("y", float16)])
        self.tenon("run", model, "-i", self.save("x.npz", {"x": x}), "-o", self.path("y.npz"), "--expect",
                   self.save("want.npz", {"y": np.maximum(x, 0)}))
        found = np.load(self.path("y.npz"))["y"]
        self.assertEqual(found.dtype, np.float16)
        np.testing.assert_array_equal(found, np.maximum(x, 0))
        out, _ = self.tenon("run", model, "--fill", "ones", "--print-top", "1")
        self.assertIn("1\n", out)
        model = self.write_model("brain.onnx", [make_models.node("Relu", "x", "y")], [make_models.value("x", 4, elem=bfloat16)],
                                 [make_models.untyped("y", bfloat16)])
        bits = np.array([0x3FC0, 0xBFC0, 0x7F80, 0x0001], np.uint16)  # 1.5, -1.5, inf, the least
        np.save(self.path("x.npy"), bits.view("V2"))
        self.tenon("run", model, "-i", self.path("x.npy"), "-o", self.path("y.npy"))
        np.testing.assert_array_equal(np.load(self.path("y.npy")).view(np.uint16), [0x3FC0, 0, 0x7F80, 0x0001])

    def test_archives_that_explode(self):
        """They are refused by the sizes that they say, before memory is taken for them."""
        np.savez_compressed(self.path("bomb.npz"), input=np.zeros(1 << 28, np.float32), more=np.zeros(1 << 24, np.float32))
        library = self.compile("mlp-4-2")
        few = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # the arrays have 1.1 GB
        done = self.run_tool("run", library, "-i", self.path("bomb.npz"), preexec_fn=few, capture_output=True, text=True)
        self.assertEqual(done.returncode, LIMIT, done.stderr)
        self.assertIn("the archive unpacks to more than 1024 MB", done.stderr)

    def test_folding_is_bounded(self):
        """What constants alone would take minutes or gigabytes to compute is left for the call."""
        m = make_models

        def compile(name, size, *nodes):
            ones = m.data(1, "value") + m.data(5, m.tensor("", [1], [1.0], m.FLOAT)) + m.number(20, 4)
            given = {"s": m.ints("s", *size), "k": m.tensor("k", [1], [2.0], m.FLOAT), "zero": m.ints("zero", 0), "one": m.ints("one", 1)}
            used = {name for node in nodes for name in node[1].split()}
            made = [m.node(op, inputs, output, ones) if op == "ConstantOfShape" else m.node(op, inputs, output, **attributes)
                    for op, inputs, output, attributes in nodes]
            model = self.write_model(f"{name}.onnx", [*made, m.node("Add", "x c", "y")], [m.value("x", 1)], ["y"],
                                     [value for name, value in given.items() if name in used])
            self.tenon("compile", model, "-o", self.path(f"{name}.so"))
            out, _ = self.tenon("inspect", self.path(f"{name}.so"))
            return os.path.getsize(self.path(f"{name}.so")), out

        total = ("ReduceSum", "b", "c", {"keepdims": 0})
        for n, ahead in [(1000, True), (4000, False)]:
            _, kernels = compile(f"product{n}", [n, n], ("ConstantOfShape", "s", "a", {}), ("MatMul", "a a", "b", {}), total)
            self.assertEqual("matmul" not in kernels, ahead, kernels)
        for op, inputs in [("ConstantOfShape", "s"), ("Expand", "k s"), ("Tile", "k s")]:
            size, _ = compile(op, [1 << 30], (op, inputs, "b", {}), ("Slice", "b zero one", "c", {}))
            self.assertLess(size, 200_000)
        size, _ = compile("grown", [1 << 15, 1 << 15], ("ConstantOfShape", "s", "b", {}), total)
        self.assertLess(size, 200_000)


class Checksums(Case):
    """What a library holds is what was compiled."""

    def test_verify(self):
        for params, files in [("embed", ["model.so"]), ("separate", ["model.so", "model.params"])]:
            library = self.compile("bert-tiny", "model.so", "--params", params)
            out, _ = self.tenon("inspect", library, "--verify")
            self.assertIn("verified: ", out)
            for name in files:
                path = pathlib.Path(self.path(name))
                whole = path.read_bytes()
                rng = np.random.default_rng(0)
                for at in [*rng.integers(0, len(whole), 12), len(whole) - 1, 4096]:
                    changed = bytearray(whole)
                    changed[at] ^= 1 << int(rng.integers(8))
                    path.write_bytes(changed)
                    self.tenon("inspect", library, "--verify", status=INPUT)
                path.write_bytes(whole)
            self.tenon("inspect", library, "--verify")

    def test_damaged_code_is_not_loaded(self):
        """The runtime itself refuses it, before any of it runs: as a program of one's own meets it."""
        runtime = ctypes.CDLL(str(harness.options.build / "lib" / "libtenon_runtime.so"))
        runtime.tn_last_error.restype = ctypes.c_char_p
        module = ctypes.c_void_p()
        library = pathlib.Path(self.compile("bert-tiny", "model.so", "--params", "separate"))
        whole = library.read_bytes()
        rng = np.random.default_rng(1)
        for at in [*rng.integers(64, len(whole) - 48, 12), 4096]:
            changed = bytearray(whole)
            changed[at] ^= 1 << int(rng.integers(8))
            library.write_bytes(changed)
            self.assertNotEqual(0, runtime.tn_module_load(str(library).encode(), ctypes.byref(module)), at)
            self.assertIn(f"cannot load '{library}': ", runtime.tn_last_error(None).decode())
        library.write_bytes(whole)
        self.assertEqual(0, runtime.tn_module_load(str(library).encode(), ctypes.byref(module)))
        runtime.tn_module_free(module)

    def test_inspect_loads_nothing(self):
        """A library that does harm when it is loaded does none when it is looked at."""
        source = self.dir / "harm.c"
        source.write_text('#include <stdlib.h>\n__attribute__((constructor)) static void harm(void) { abort(); }\n')
        subprocess.run([harness.options.cc, "-shared", "-fPIC", "-o", self.path("harm.so"), source], check=True)
        _, err = self.tenon("inspect", self.path("harm.so"), status=INPUT)
        self.assertIn("not a library that Tenon compiled", err)
