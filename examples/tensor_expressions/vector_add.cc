// A vector addition for every size: described, scheduled, built, called, saved and loaded again.
//
//   vector_add [FILE]                     for this machine
//   vector_add --target TARGET FILE       for another one, which calls what is saved
#include <cstdio>
#include <cstring>
#include <vector>

#include "tenon/compiler.hpp"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Tensor;

int main(int argc, char** argv) try {
  const bool elsewhere = argc == 4 && std::strcmp(argv[1], "--target") == 0;
  const tenon::Target target = elsewhere ? tenon::Target(argv[2]) : tenon::Target();
  const char* path = elsewhere ? argv[3] : argc > 1 ? argv[1] : "add.so";

  // What: the size n is known when the function is called.
  te::Var n("n");
  te::Tensor a = te::Placeholder({n}, DataType::kFloat32, "A");
  te::Tensor b = te::Placeholder({n}, DataType::kFloat32, "B");
  te::Tensor c = te::Compute({n}, [&](te::Var i) { return a(i) + b(i); }, "C");

  // How: pieces of 64 elements, divided over the cores, each in vectors.
  tenon::Schedule s = tenon::CreateSchedule({c});
  auto [outer, inner] = s[c].Split(c.op().axis()[0], 64);
  s[c].Parallel(outer);
  s[c].Vectorize(inner);
  std::printf("%s\n", tenon::Lower(s, {a, b, c}, "add").str().c_str());

  tenon::Library add = tenon::Build(s, {a, b, c}, target, "add");
  add.Save(path);
  if (elsewhere) return std::printf("%s is for %s\n", path, target.str().c_str()), 0;
  tenon::Module loaded = tenon::Module::LoadFromFile(path);

  std::vector<float> x(1000), y(1000, 1), z(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  auto view = [](std::vector<float>& v) {
    return Tensor::Wrap(v.data(), {static_cast<int64_t>(v.size())}, DataType::kFloat32);
  };
  add.GetFunction("add")(view(x), view(y), view(z));       // into z
  Tensor w = loaded.GetFunction("add")(view(x), view(y));  // or a new tensor
  for (size_t i = 0; i < x.size(); ++i) {
    if (z[i] != x[i] + 1 || w.data_as<float>()[i] != x[i] + 1) {
      std::printf("wrong at %zu\n", i);
      return 1;
    }
  }
  std::puts("the results agree");
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "vector_add: %s\n", error.what());
  return 1;
}
