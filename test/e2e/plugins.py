import shutil
import subprocess
import sys

import harness
from harness import Case, INPUT, ROOT, USAGE

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

# int32_t call(float* y, int wrong): the network on {1, 2, 3, 4}, or with an argument too few dims; error() says what is wrong.
PLUGIN = """
#include "net.h"
static tn_dl_tensor View(float* data, int64_t* shape, int32_t ndim) {
  tn_dl_tensor view = {data, {TN_DL_CPU, 0}, ndim, {TN_DL_FLOAT, 32, 1}, shape, 0, 0};
  return view;
}
#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) int32_t call(float* y, int wrong) {
  float x[4] = {1, 2, 3, 4};
  int64_t in[2] = {1, 4}, out[2] = {1, 2};
  tn_dl_tensor a = View(x, in, wrong ? 1 : 2), b = View(y, out, 2);
  return net(&a, &b);
}
"""
NET_ERROR = """
__attribute__((visibility("default"))) const char* error(void) { return net_error(); }
"""
RUNTIME_ERROR = """
#include <tenon/c_api.h>
__attribute__((visibility("default"))) const char* error(void) { return tn_last_error(0); }
"""
MAIN = """
#include <stdio.h>
#include <string.h>
int call(float* y, int wrong);
const char* error(void);
int main(void) {
  float y[2];
  if (call(y, 0) != 0 || call(y, 1) != -1) return 1;
  puts(error());
  return strstr(error(), "expects ndim=2 but got ndim=1") ? 0 : 2;
}
"""


class Plugins(Case):
    """Compiled networks as parts of programs and of plugins, in all combinations."""

    def cc(self, output, *words):
        command = [harness.options.cc, "-I", ROOT / "include", "-I", self.dir, "-o", self.path(output), *words]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(output)

    def write(self, name, text):
        (self.dir / name).write_text(text)
        return self.path(name)

    def shown(self, path):
        text = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        return {line.split()[-1] for line in text.splitlines()}

    def other_network(self):
        """Of the same name, inputs and outputs, with other weights."""
        for suffix in ["onnx", "weights"]:
            shutil.copy(self.model("mlp-4-2").replace(".onnx", f".{suffix}"), self.dir)
        (self.dir / "mlp-4-2.weights").write_bytes(bytes((self.dir / "mlp-4-2.weights").stat().st_size))
        return self.path("mlp-4-2.onnx")

    def run_here(self, code, *args):
        """Python code in a process of its own, so that what it loads is loaded for the first time."""
        done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    TWO = """
import ctypes, os, sys
results = []
libraries = [ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL) for path in sys.argv[1:]]
for library in libraries:
    y = (ctypes.c_float * 2)()
    assert library["call"](y, 0) == 0
    results.append(list(y))
assert len({tuple(y) for y in results}) == len(results), results
"""

    def test_two_plugins_with_models_of_one_name(self):
        """Each answers with its own network, though both are in the global scope."""
        source = self.write("plugin.c", PLUGIN)
        for flags, shows in [([], False), (["--export"], True)]:
            with self.subTest(flags):
                plugins = []
                for model, name in [(self.model("mlp-4-2"), "first.so"), (self.other_network(), "second.so")]:
                    self.tenon("compile", model, "-o", self.path("net.o"), "--format", "obj", "--name", "net", *flags)
                    plugins.append(self.cc(name, "-shared", "-fPIC", source, self.path("net.o")))
                    self.assertEqual({"__tvm_ffi_net", "net_error"} <= self.shown(plugins[-1]), shows)
                    self.assertEqual(self.shown(plugins[-1]) == {"call"}, not shows)
                if not shows:
                    self.run_here(self.TWO, *plugins)

    def test_two_plugins_of_c_source(self):
        plugin = self.write("plugin.c", """
#include "net.h"
__attribute__((visibility("default"))) int call(float* y, int wrong) {
  static _Alignas(64) char workspace[NET_WORKSPACE_BYTES + 1];
  float x[4] = {1, 2, 3, 4};
  return net_run(wrong ? 0 : x, y, workspace);
}
""")
        make = lambda name, *flags: self.cc(name, "-shared", "-fPIC", "-std=c11", *flags, plugin, self.path("net.c"), "-lm")
        plugins = []
        for model, name in [(self.model("mlp-4-2"), "first.so"), (self.other_network(), "second.so")]:
            self.tenon("compile", model, "-o", self.path("net.c"), "--name", "net")
            plugins.append(make(name))
            self.assertEqual(self.shown(plugins[-1]), {"call"})
        self.run_here(self.TWO, *plugins)
        functions = {"net_run", "net_error", "__tvm_ffi_net"}
        self.assertLessEqual(functions, self.shown(make("shown.so", '-DTN_EXPORT=__attribute__((visibility("default")))')))
        self.compile("mlp-4-2", "net.c", "--name", "net", "--export")
        self.assertLessEqual(functions, self.shown(make("shown.so")))

    def test_soname(self):
        library = self.compile("mlp-4-2", "net.so", "--name", "net")
        name = lambda path: [line.split("[")[1].rstrip("]") for line in subprocess.run(
            ["readelf", "-d", path], capture_output=True, text=True, check=True).stdout.splitlines() if "SONAME" in line]
        self.assertEqual(name(library), ["net.so"])
        # A program that was linked by the library's path starts in another folder, where the library is found.
        program = self.cc("program", self.write("main.c", MAIN), self.write("plugin.c", PLUGIN + NET_ERROR), library,
                          "-Wl,-rpath,$ORIGIN/elsewhere")
        (self.dir / "elsewhere").mkdir()
        shutil.move(library, self.path("elsewhere/net.so"))
        done = subprocess.run([program], cwd="/", capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(name(self.compile("mlp-4-2", "other.so", "--soname", "libother.so.1")), ["libother.so.1"])
        for args, text in [(["--soname", "a/b.so"], "no '/'"), (["--format", "obj", "--soname", "x"], "--format so"),
                           (["--export"], "--format obj and c")]:
            _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("x.out"), *args, status=USAGE)
            self.assertIn(text, err)

    def test_errors_are_never_lost(self):
        """Where the network, the runtime and who asks are: the message arrives."""
        lib = harness.options.build / "lib"
        shared = ["-L", lib, "-ltenon_runtime", f"-Wl,-rpath,{lib}"]
        static = [lib / "libtenon_runtime.a", "-ldl", "-lpthread"]
        main = self.write("main.c", MAIN)
        for form in ["obj", "so"]:
            suffix = "o" if form == "obj" else "so"
            network = self.compile("mlp-4-2", f"libnet.{suffix}", "--format", form, "--name", "net")
            rpath = ["-Wl,-rpath,$ORIGIN"]
            for runtime, asks in [("none", NET_ERROR), ("shared", NET_ERROR), ("shared", RUNTIME_ERROR), ("static", NET_ERROR),
                                  ("static", RUNTIME_ERROR)]:
                source = self.write("plugin.c", PLUGIN + asks)
                libraries = {"none": [], "shared": shared, "static": static}[runtime]
                with self.subTest(form=form, runtime=runtime, asks=asks):
                    program = self.cc("program", main, source, network, *libraries, *rpath)
                    done = subprocess.run([program], capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    plugin = self.cc("plugin.so", "-shared", "-fPIC", "-fvisibility=hidden", source, network, *libraries, *rpath,
                                     "-Wl,--exclude-libs,ALL")
                    self.assertEqual(self.shown(plugin) & {"tn_last_error", "tn_call", "tn_runtime_services"}, set())
                    out = self.run_here("import ctypes, sys\n" + self.ASK, plugin)
                    self.assertIn("expects ndim=2 but got ndim=1", out)
        # Two plugins, each with a runtime of its own, and a third that the process has for all.
        source = self.write("plugin.c", PLUGIN + RUNTIME_ERROR)
        network = self.compile("mlp-4-2", "libnet.so", "--name", "net")
        plugins = [self.cc(f"{i}.so", "-shared", "-fPIC", "-fvisibility=hidden", source, network, *static, "-Wl,-rpath,$ORIGIN",
                           "-Wl,--exclude-libs,ALL") for i in "12"]
        out = self.run_here(f"import ctypes, sys\nctypes.CDLL('{lib}/libtenon_runtime.so')\n" + self.ASK, *plugins)
        self.assertEqual(out.count("expects ndim=2 but got ndim=1"), 2, out)

    ASK = """
for path in sys.argv[1:]:
    plugin = ctypes.CDLL(path)
    plugin.error.restype = ctypes.c_char_p
    assert plugin.call((ctypes.c_float * 2)(), 0) == 0
    assert plugin.call((ctypes.c_float * 2)(), 1) == -1
    print(plugin.error().decode())
"""

    def test_a_plugin_with_a_runtime_can_be_unloaded(self):
        lib = harness.options.build / "lib"
        self.compile("mlp-4-2", "net.o", "--format", "obj", "--name", "net")
        plugin = self.cc("plugin.so", "-shared", "-fPIC", self.write("plugin.c", PLUGIN + RUNTIME_ERROR), self.path("net.o"),
                         lib / "libtenon_runtime.a", "-ldl", "-lpthread")
        self.assertEqual({name for name in self.shown(plugin) if name.startswith(("tn_", "__t"))}, set())
        self.run_here("""
import ctypes, sys
dlclose = ctypes.CDLL(None).dlclose
dlclose.argtypes = [ctypes.c_void_p]
for _ in range(3):
    plugin = ctypes.CDLL(sys.argv[1])
    assert plugin.call((ctypes.c_float * 2)(), 0) == 0
    dlclose(plugin._handle)
    assert sys.argv[1] not in open("/proc/self/maps").read()
""", plugin)

    def test_static_programs(self):
        """A network is linked in; to load a library is refused with the reason."""
        lib = harness.options.build / "lib"
        self.compile("mlp-4-2", "net.o", "--format", "obj", "--name", "net")
        program = self.cc("program", "-static", self.write("main.c", MAIN), self.write("plugin.c", PLUGIN + RUNTIME_ERROR),
                          self.path("net.o"), lib / "libtenon_runtime.a", "-ldl", "-lpthread")
        done = subprocess.run([program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        library = self.compile("mlp-4-2")
        loader = self.cc("loader", "-static", self.write("loader.c", """
#include <stdio.h>
#include <tenon/c_api.h>
int main(int argc, char** argv) {
  tn_module_t* module;
  return argc > 1 && tn_module_load(argv[1], &module) == 0 ? 0 : (puts(tn_last_error(0)), 1);
}
"""), lib / "libtenon_runtime.a", "-ldl", "-lpthread")
        done = subprocess.run([loader, library], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is linked statically", done.stdout)
        self.assertIn("--format obj", done.stdout)

    def test_a_library_that_was_written_over(self):
        """Not renamed, as Tenon does: what is loaded of it is a mixture by now, and is not loaded again."""
        library, other = self.compile("mlp-4-2", "a.so"), self.compile("mlp-4-2", "b.so", "--name", "other")
        self.run_here(f"""
import ctypes, os, sys
runtime = ctypes.CDLL("{harness.options.build}/lib/libtenon_runtime.so")
runtime.tn_last_error.restype = ctypes.c_char_p
module = ctypes.c_void_p()
assert runtime.tn_module_load(sys.argv[1].encode(), ctypes.byref(module)) == 0
again = ctypes.c_void_p()
assert runtime.tn_module_load(sys.argv[1].encode(), ctypes.byref(again)) == 0
runtime.tn_module_unload(again)
with open(sys.argv[2], "rb") as new, open(sys.argv[1], "r+b") as old:
    old.write(new.read())
    old.truncate()
assert runtime.tn_module_load(sys.argv[1].encode(), ctypes.byref(again)) == -1
message = runtime.tn_last_error(None).decode()
assert "written over" in message, message
os._exit(0)  # its own code is a mixture too
""", library, other)

    def test_headers_have_no_warnings(self):
        self.compile("mlp-4-2", "net.so", "--name", "net")
        self.write("all.h", "".join(f'#include "{h}"\n' for h in ["net.h", "tenon/c_api.h", "tenon/kernel_abi.h"]))
        include = ROOT / "include"
        compat = [f"#include <{p.relative_to(include / 'tenon/compat')}>\n" for p in (include / "tenon/compat").rglob("*.h")]
        self.write("all.cc", '#include "all.h"\n#include <tenon/tenon.hpp>\n' + "".join(sorted(compat)))
        self.write("all.c", '#include "all.h"\n')
        compilers = [(str(harness.options.cc), str(harness.options.cxx))]
        if shutil.which("gcc") and shutil.which("g++"):
            compilers.append(("gcc", "g++"))
        for cc, cxx in compilers:
            for command in [[cc, "-std=c11", "-x", "c"], [cxx, "-std=c++17", "-x", "c++"]]:
                source = self.path("all.c" if "c" in command else "all.cc")
                done = subprocess.run([*command, *STRICT, "-fsyntax-only", "-I", self.dir, "-I", str(include), "-I",
                                       str(include / "tenon/compat"), source], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_archive_is_refused(self):
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("net.a"), status=INPUT)
        self.assertIn("'%s' does not end as a library" % self.path("net.a"), err)
        self.assert_only()
