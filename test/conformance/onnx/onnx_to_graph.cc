// onnx_to_graph MODEL…: imports each model and prints its graph, or its errors as comments, under a
// line "// MODEL".
#include <cstdio>
#include <string>

#include "frontend/onnx/import.h"
#include "graph/text.h"

int main(int argc, char** argv) {
  int failures = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    printf("// %s\n", path.c_str());
    tenon::Expected<tenon::graph::Graph> g = tenon::onnx::ImportOnnx(path);
    if (g) {
      fputs(tenon::graph::Print(*g).c_str(), stdout);
      continue;
    }
    ++failures;
    for (const tenon::Diagnostic& d : g.errors())
      printf("// error: %s: %s\n", d.loc.item.c_str(), d.message.c_str());
  }
  return failures ? 1 : 0;
}
