import os
import resource
import shutil
import signal
import subprocess
import time

import harness
from harness import Case, DONE, INPUT, LIMIT


class Stopping(Case):
    """Limits and signals leave nothing behind."""

    def test_limits(self):
        for flag, value in [("--max-time", "0.02s"), ("--max-memory", "20M")]:
            _, err = self.tenon("compile", self.model("bert-tiny"), "-o", self.path("m.so"), flag, value, status=LIMIT)
            self.assertIn(flag, err)
            self.assert_only()
        self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--max-time", "5m", "--max-memory", "8G")

    def test_signals(self):
        """Neither a half library nor anything of the linker's survives."""
        scratch = self.dir / "scratch"
        scratch.mkdir()
        for number in [signal.SIGINT, signal.SIGTERM]:
            for delay in [0.05, 0.15, 0.25, 0.35, 0.45]:
                process = subprocess.Popen([harness.options.build / "bin" / "tenon", "compile", self.model("bert-tiny"), "-o",
                                            self.path("m.so")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           env={**os.environ, "TMPDIR": str(scratch)})
                time.sleep(delay)
                process.send_signal(number)
                self.assertIn(process.wait(), [-number, 0])
                # The signal may come after the library has got its name: then it is whole.
                if process.returncode == 0 or (self.dir / "m.so").exists():
                    self.tenon("run", self.path("m.so"), "--fill", "ones")
                    os.remove(self.path("m.so"))
                self.assert_only("scratch")
                self.assertEqual(list(scratch.iterdir()), [])

    def test_reader_that_leaves(self):
        """`tenon compile … | head`: who prints to nobody ends, and leaves nothing of what it was writing."""
        read, write = os.pipe()
        os.close(read)
        process = subprocess.Popen([harness.options.build / "bin" / "tenon", "compile", self.model("bert-tiny"), "-o", self.path("m.so"),
                                    "--time-passes"], stdout=write, stderr=write)
        os.close(write)
        self.assertEqual(process.wait(), -signal.SIGPIPE)
        self.assert_only()

    def test_killed(self):
        """A library under its own name is whole, whatever happened to the process that wrote it."""
        for delay in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]:
            process = subprocess.Popen([harness.options.build / "bin" / "tenon", "compile", self.model("bert-tiny"), "-o",
                                        self.path("m.so")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.kill()
            process.wait()
            if (self.dir / "m.so").exists():
                self.tenon("run", self.path("m.so"), "--fill", "ones")
                os.remove(self.path("m.so"))

    def test_full_disk(self):
        """Writing fails in the code, in the weights, in what stands beside them: an error, and nothing is left."""
        for limit in [0, 4096, 200_000, 3_000_000]:
            for output, flags in [("m.so", []), ("m.so", ["--params", "separate"]), ("m.o", ["--format", "obj"]), ("folder/", [])]:
                command = [harness.options.build / "bin" / "tenon", "compile", self.model("bert-tiny"), "-o", f"{self.dir}/{output}", *flags]
                done = subprocess.run(command, capture_output=True, text=True,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                self.assertEqual(done.returncode, LIMIT, done.stderr)
                self.assertIn("File too large", done.stderr)
                self.assertEqual([p for p in self.dir.rglob("*") if p.is_file()], [])

    def test_weights_that_become_shorter(self):
        """While they are read: an error, not a crash."""
        ends = []
        for delay in [0.02, 0.05, 0.1, 0.15, 0.2, 0.3]:
            for file in harness.models.glob("bert-tiny*"):
                shutil.copy(file, self.dir)
            process = subprocess.Popen([harness.options.build / "bin" / "tenon", "compile", self.path("bert-tiny.onnx"), "-o",
                                        self.path("m.so")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(delay)
            os.truncate(max(self.dir.glob("bert-tiny*"), key=os.path.getsize), 100)
            _, err = process.communicate()
            ends.append(process.returncode)
            self.assertIn(process.returncode, [DONE, INPUT], err)
            if process.returncode == INPUT:
                self.assertTrue("external data" in err or "has become shorter" in err, err)
            self.assertEqual((self.dir / "m.so").exists(), process.returncode == DONE)
            for file in self.dir.glob("*"):
                self.assertTrue(file.name == "m.so" or file.name.startswith("bert-tiny"), file)
                os.remove(file)
        self.assertIn(INPUT, ends)
