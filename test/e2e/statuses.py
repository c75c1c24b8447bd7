import json
import pathlib
import subprocess

import numpy as np

import harness
from harness import Case, DONE, INPUT, USAGE, reference


class Statuses(Case):
    """Exit statuses and messages."""

    def test_wrong_usage(self):
        for args, message in [([], ""), (["compil"], "did you mean 'compile'"), (["run"], "model is required"),
                              (["run", "x.so", "--frob"], "there is no option '--frob'"),
                              (["compile", "m.onnx", "-o", "m.so", "--precison", "bf16"], "did you mean '--precision'"),
                              (["compile", "m.onnx", "-o", "m.so", "more"], "nothing is expected of 'more'"), (["compile", "m.onnx"], "--output is required"),
                              (["compile", "m.onnx", "-o", "m.so", "--shape", "x:1xx2"], "is not a size"),
                              (["compile", "m.onnx", "-o", "m.so", "--max-memory", "lots"], "a size such as 512M"),
                              (["compile", "m.onnx", "-o", "m.so", "--disable", "simplif"], "did you mean 'simplify'"),
                              (["compile", "m.onnx", "-o", "m.so", "-O7"], "7"),
                              (["compile", "m.onnx", "-o", "m.so", "--name", "a-b"], "identifier"),
                              (["compile", "m.onnx", "-o", "m.so", "--name", "printf"], "a function of C's library"),
                              (["compile", "m.onnx", "-o", "m.so", "--name", "while"], "a word of C"),
                              (["compile", "m.onnx", "-o", "m.so", "--name", "pthread_create"], "a name of the C library's"),
                              (["compile", "m.onnx", "-o", "m.so", "--name", "tn_call"], "as those of Tenon's runtime"),
                              (["compile", "m.onnx", "-o", "m.so", "--name", "__x"], "as those of compilers"),
                              (["compile", "m.onnx", "-o", "m.so", "--target", "llvm -mcpu=i9"], "i9"),
                              (["compile", "m.onnx", "-o", "m.so", "--disable", "make_packed"], "cannot be left out"),
                              (["run", "m.so", "-i", "x.txt"], "expected x.npz"), (["run", "m.so", "-o", "x.txt"], "expected x.npz"),
                              (["bench", "m.so", "--repeat", "3", "--duration", "2"], "excludes")]:
            _, err = self.tenon(*args, status=USAGE)
            self.assertIn(message, err)
            _, err = self.tenon(*args, "--error-format", "json", status=USAGE)
            if args:
                found = json.loads(err)
                self.assertEqual(found["kind"], "usage")
                self.assertIn(message, found["message"])
        self.assert_only()

    def test_help_and_version(self):
        for verb in [[], ["compile"], ["run"], ["bench"], ["inspect"]]:
            out, _ = self.tenon(*verb, "--help")
            self.assertIn("tenon", out)
        out, _ = self.tenon("--version")
        self.assertRegex(out, r"^tenon \d+\.\d+\.\d+$")

    def test_files_at_fault(self):
        (self.dir / "text.onnx").write_text("not a model")
        (self.dir / "empty.so").write_bytes(b"")
        library = self.compile("mlp-4-2")
        (self.dir / "cut.so").write_bytes(pathlib.Path(library).read_bytes()[:9000])
        for args, message in [(["compile", self.path("none.onnx"), "-o", self.path("m.so")], "none.onnx"),
                              (["compile", self.path("text.onnx"), "-o", self.path("m.so")], "text.onnx"),
                              (["run", self.path("cut.so")], "truncated"), (["run", self.path("empty.so")], "empty.so"),
                              (["run", library], "is not given; give it with -i"),
                              (["run", library, "-i", self.path("text.onnx") + ".npz"], "cannot open it"),
                              (["compile", self.model("mlp-4-2"), "-o", self.path("no/such/m.so")], "no/such"),
                              (["compile", library, "-o", self.path("m.so")], "not an ONNX model but a compiled library"),
                              (["compile", self.path("text.onnx"), "-o", self.path("m.so")], "not an ONNX model"),
                              (["run", library, "-O0", "--fill", "ones"], "is compiled already"),
                              (["run", library, "--shape", "input:2x4", "--fill", "ones"], "--shape input:2x4: the input is float32 1x4"),
                              (["run", library, "--shape", "other:1x4", "--fill", "ones"], "there is no input 'other'"),
                              (["run", "/bin/ls"], "/bin/ls: error: cannot load it: cannot dynamically load"),
                              (["inspect", "/dev/null"], "")]:
            _, err = self.tenon(*args, status=INPUT)
            self.assertIn(message, err)
        self.assert_only("text.onnx", "empty.so", "cut.so", "model.so")

    def test_output_is_checked_first(self):
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("no/such/m.so"), status=INPUT)
        self.assertEqual(len(err.splitlines()), 1, err)  # no phase came before

    def test_every_pass_that_can_be_left_out(self):
        """What --disable takes gives a library that works."""
        passes = subprocess.run([harness.options.build / "bin" / "tenon-opt", "--list-passes"], capture_output=True, text=True).stdout
        inputs, outputs = reference("mlp-4-2")
        given, wanted = self.save("in.npz", inputs), self.save("want.npz", outputs)
        left_out = 0
        for name in [line.split()[1] for line in passes.splitlines()]:
            with self.subTest(name):
                done = subprocess.run([harness.options.build / "bin" / "tenon", "compile", self.model("mlp-4-2"), "-o", self.path("m.so"),
                                       "--disable", name], capture_output=True, text=True)
                self.assertIn(done.returncode, [DONE, USAGE], done.stderr)
                if done.returncode == DONE:
                    left_out += 1
                    self.tenon("run", self.path("m.so"), "-i", given, "--expect", wanted)
        self.assertGreater(left_out, 10)

    def test_threads(self):
        library = self.compile("mlp-4-2")
        for value in ["abc", "0", "2x", ""]:
            _, err = self.tenon("run", library, "--fill", "ones", status=INPUT, env={"TENON_NUM_THREADS": value})
            self.assertIn(f"TENON_NUM_THREADS is '{value}'", err)

    def test_arrays_without_a_name(self):
        np.save(self.path("x.npy"), np.zeros((1, 4), np.float32))
        _, err = self.tenon("run", self.compile("bert-tiny"), "-i", self.path("x.npy"), "--fill", "ones", status=INPUT)
        self.assertIn("say which it is: ", err)

    def test_wrong_inputs(self):
        library = self.compile("mlp-4-2")
        (name,) = reference("mlp-4-2")[0]
        for array, message in [(np.zeros((1, 5), np.float32), "5"), (np.zeros((1, 4)), "float32"), (np.zeros(4, np.float32), "ndim=2")]:
            _, err = self.tenon("run", library, "-i", self.save("in.npz", {name: array}), status=INPUT)
            self.assertIn(message, err)
        _, err = self.tenon("run", library, "-i", self.save("in.npz", {"y": np.zeros(1)}), status=INPUT)
        self.assertIn(f"there is no input 'y'; there are {name}", err)

    def test_broken_arrays(self):
        library = self.compile("mlp-4-2")
        good = self.path("x.npy")
        np.save(good, np.zeros((1, 4), np.float32))
        whole = pathlib.Path(good).read_bytes()
        for size in list(range(0, 128, 7)) + [len(whole) - 1]:
            pathlib.Path(good).write_bytes(whole[:size])
            self.tenon("run", library, "-i", good, status=INPUT)
        for old, new in [(b"<f4", b">f4"), (b"<f4", b"|O4"), (b"(1, 4)", b"(9, 4)"), (b"(1, 4)", b"(-1,4)"), (b"False", b"Fals ")]:
            pathlib.Path(good).write_bytes(whole.replace(old, new))
            self.tenon("run", library, "-i", good, status=INPUT)
        archive = pathlib.Path(self.save("in.npz", reference("mlp-4-2")[0]))
        whole = archive.read_bytes()
        at = whole.index(b"NUMPY") + 140
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        self.tenon("run", library, "-i", archive, status=INPUT)

    def test_broken_libraries(self):
        """Cut anywhere, or with a changed head or other information: refused with a message."""
        library = self.compile("mlp-4-2")
        whole = pathlib.Path(library).read_bytes()
        broken = {f"cut at {size}": whole[:size] for size in [0, 1, 4, 63, 64, 100, 1000, 4096, len(whole) // 2, len(whole) - 100]}
        for at in [4, 5, 16, 18, 32, 54, 56]:  # class, byte order, type, machine, tables
            broken[f"byte {at}"] = whole[:at] + bytes([whole[at] ^ 0x7F]) + whole[at + 1:]
        refused = set(broken)
        begin = whole.index(b'{"', whole.index(b'"functions"') - 4000)
        end = whole.index(b"\0", begin)
        for old, new in [(b'"inputs"', b'"inqots"'), (b'"float32"', b'"float99"'), (b'"name"', b'"nome"'), (b'"abi"', b'"abj"'),
                         (b'"target"', b'"torget"'), (b'"kernels"', b'"colonel"'), (b"[", b"{"), (b":", b","), (b"{", b"["),
                         (b'"', b"5"), (b"1", b'"'), (b"}", b" ")]:
            broken[f"{old} as {new}"] = whole[:begin] + whole[begin:end].replace(old, new) + whole[end:]
        for what, content in broken.items():
            pathlib.Path(library).write_bytes(content)
            for verb in [["run", library, "--fill", "ones"], ["inspect", library]]:
                with self.subTest(what, verb=verb[0]):
                    done = subprocess.run([harness.options.build / "bin" / "tenon", *verb], capture_output=True, timeout=60)
                    self.assertIn(done.returncode, [INPUT] if what in refused else [DONE, INPUT], done.stderr)
                    if done.returncode == INPUT:
                        self.assertIn(b"tenon: ", done.stderr)

    def test_errors_as_json(self):
        _, err = self.tenon("--error-format", "json", "compile", self.path("none.onnx"), "-o", self.path("m.so"), status=INPUT)
        (line,) = err.splitlines()
        self.assertEqual(json.loads(line)["severity"], "error")
        for verb in [["run"], ["inspect"], ["compile", "-o", self.path("m.so")]]:
            _, err = self.tenon("--error-format", "json", *verb, self.path("none.onnx"), status=INPUT)
            self.assertEqual(json.loads(err.splitlines()[-1])["file"], self.path("none.onnx"))
