import json
import os
import subprocess

import numpy as np

import harness
from harness import Case, ROOT, MODELS, reference


class Bundles(Case):
    """The folder form, names and objects: what other programs link and include."""

    def test_the_example_builds_and_runs(self):
        for model in MODELS:
            with self.subTest(model):
                self.compile(model, f"{model}/")
                bundle = self.dir / model
                self.assertEqual({p.name for p in bundle.iterdir()}, {"model.so", "metadata.json", "inference_example.cpp"})
                metadata = json.loads((bundle / "metadata.json").read_text())
                self.assertEqual(metadata["functions"][0]["name"], "main")
                program = self.build("example", bundle / "inference_example.cpp")
                done = subprocess.run([program], cwd=bundle, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                for output in reference(model)[1]:
                    self.assertIn(f"{output}: ", done.stdout)
                self.assertNotEqual(subprocess.run([program, "nowhere.so"], capture_output=True).returncode, 0)

    PROGRAM = """
#include <cstdio>
#include "first.h"
#include "second.h"
static tn_dl_tensor View(float* data, int64_t* shape) {
  return {data, {TN_DL_CPU, 0}, 2, {TN_DL_FLOAT, 32, 1}, shape, nullptr, 0};
}
int main() {
  float x[4] = {1, 2, 3, 4}, y[2] = {}, z[2] = {};
  int64_t in[2] = {1, 4}, out[2] = {1, 2};
  tn_dl_tensor a = View(x, in), b = View(y, out), c = View(z, out);
  if (first(&a, &b) != 0 || second(&a, &c) != 0) return 1;
  std::printf("%g %g\\n%g %g\\n", y[0], y[1], z[0], z[1]);
  return first(&b, &b) == 0;
}
"""

    def check_two_models(self, suffix, *flags):
        self.compile("mlp-4-2", f"first{suffix}", "--name", "first", *flags)
        self.compile("mlp-4-2", f"second{suffix}", "--name", "second", "-O0", *flags)
        source = self.dir / "program.cc"
        source.write_text(self.PROGRAM)
        program = self.build("program", source, "-I", self.dir, libraries=[self.path(f"first{suffix}"), self.path(f"second{suffix}")])
        done = subprocess.run([program], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": str(self.dir)})
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [list(map(float, line.split())) for line in done.stdout.splitlines()]
        np.testing.assert_allclose(rows[0], rows[1], rtol=1e-4)
        self.assertNotEqual(rows[0], [0, 0])

    def test_two_libraries_in_one_program(self):
        self.check_two_models(".so")
        self.tenon("run", self.path("first.so"), "--fill", "ones")

    def test_two_objects_in_one_program(self):
        self.check_two_models(".o", "--format", "obj")

    def test_a_session_finds_the_function_by_its_name(self):
        self.compile("mlp-4-2", "first.so", "--name", "first")
        source = self.dir / "session.cc"
        source.write_text("""
#include <cstdio>
#include <cstring>
#include <tenon/tenon.hpp>
int main(int, char** argv) {
  tenon::Session session(argv[1]);
  auto x = tenon::Tensor::Empty(session.inputs()[0].shape, session.inputs()[0].dtype);
  std::memset(x.data(), 0, static_cast<size_t>(x.bytes()));
  auto results = session.Run({{session.inputs()[0].name, x}});
  std::printf("%s %zu\\n", session.module().Name().c_str(), results.size());
}
""")
        program = self.build("session", source)
        done = subprocess.run([program, self.path("first.so")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "first 1\n"), done.stderr)

    def test_header_is_c(self):
        self.compile("mlp-4-2", "m.so", "--name", "net")
        (self.dir / "use.c").write_text('#include "net.h"\nint main(void) { return net(0, 0) == 0; }\n')
        subprocess.run([harness.options.cc, "-std=c11", "-Wall", "-Werror", "-I", ROOT / "include", "-c", self.path("use.c"), "-o",
                        self.path("use.o")], check=True)
