// Loop IR and its schedules, through the public headers alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tenon/compiler.hpp"

namespace {

using tenon::DataType;
using tenon::IrSchedule;
namespace te = tenon::te;

struct MatMul {
  explicit MatMul(int64_t n)
      : a(te::Placeholder({n, n}, DataType::kFloat32, "A")),
        b(te::Placeholder({n, n}, DataType::kFloat32, "B")),
        k(te::ReduceAxis(0, n)),
        c(te::Compute(
            {n, n}, [&](te::Var i, te::Var j) { return te::Sum(a(i, k) * b(k, j), {k}); }, "C")) {}
  std::vector<te::Tensor> args() const { return {a, b, c}; }

  te::Tensor a, b;
  te::IterVar k;
  te::Tensor c;
};

void ExpectProduct(const tenon::Function& f, int64_t n) {
  auto size = static_cast<size_t>(n * n);
  std::vector<float> x(size), y(size), z(size, -1);
  for (size_t i = 0; i < size; ++i) {
    x[i] = static_cast<float>(i % 7) - 3;
    y[i] = static_cast<float>(i % 5) - 2;
  }
  auto view = [&](std::vector<float>& v) {
    return tenon::Tensor::Wrap(v.data(), {n, n}, DataType::kFloat32);
  };
  f(view(x), view(y), view(z));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float want = 0;
      for (int64_t k = 0; k < n; ++k) {
        want += x[static_cast<size_t>(i * n + k)] * y[static_cast<size_t>(k * n + j)];
      }
      ASSERT_EQ(z[static_cast<size_t>(i * n + j)], want) << i << ", " << j;
    }
  }
}

// What Trace::ToCpp prints for the schedule below, word for word.
void Apply(tenon::IrSchedule& s) {
  s.Decide("rows", {2, 4}, 4);       // 4
  s.Split("C.i0", {"-1", "$rows"});  // C.i0.0, C.i0.1
  s.Reorder({"C.i0.0", "C.k", "C.i0.1", "C.i1"});
  s.Annotate("C.i0.0", "hint", 3);
}

TEST(Ir, ATraceIsAProgram) {
  MatMul m(16);
  IrSchedule s(tenon::CreateFunc(m.args()));
  Apply(s);
  EXPECT_EQ(s.trace().ToCpp(),
            "void Apply(tenon::IrSchedule& s) {\n"
            "  s.Decide(\"rows\", {2, 4}, 4);  // 4\n"
            "  s.Split(\"C.i0\", {\"-1\", \"$rows\"});  // C.i0.0, C.i0.1\n"
            "  s.Reorder({\"C.i0.0\", \"C.k\", \"C.i0.1\", \"C.i1\"});\n"
            "  s.Annotate(\"C.i0.0\", \"hint\", 3);\n"
            "}\n");
  EXPECT_EQ(s.trace().ToPython(),
            "def apply(s):\n"
            "    s.decide(\"rows\", [2, 4], 4)  # 4\n"
            "    s.split(\"C.i0\", [\"-1\", \"$rows\"])  # C.i0.0, C.i0.1\n"
            "    s.reorder([\"C.i0.0\", \"C.k\", \"C.i0.1\", \"C.i1\"])\n"
            "    s.annotate(\"C.i0.0\", \"hint\", 3)\n");
  for (int64_t n : {16, 20}) {
    MatMul other(n);
    IrSchedule again(tenon::CreateFunc(other.args()));
    again.UseDecisions({{"rows", 2}});
    again.Replay(tenon::Trace::FromJson(s.trace().ToJson()));
    EXPECT_EQ(again.GetExtent("C.i0.1"), 2);
    ExpectProduct(tenon::Build(again.module()).GetFunction("main"), n);
  }
}

TEST(Ir, AFailedPrimitiveChangesNothing) {
  MatMul m(8);
  IrSchedule s(tenon::CreateFunc(m.args()));
  const std::string before = s.module().str();
  try {
    s.Vectorize("C.k");
    FAIL() << "it is legal";
  } catch (const tenon::Error& e) {
    EXPECT_EQ(std::string(e.what()), "vectorize(C.k) of block C: loop C.k runs over its reduction");
  }
  EXPECT_EQ(s.module().str(), before);
  s.Parallel("C.i0");
  EXPECT_EQ(s.trace().size(), 1);
}

TEST(Ir, AStageIsTensorizedByWhatTensorsDescribe) {
  tenon::TensorIntrin::Register("unit.mma4", MatMul(4).args());
  MatMul m(16);
  tenon::Schedule s = tenon::CreateSchedule({m.c});
  auto [xo, yo, xi, yi] = s[m.c].Tile(m.c.op().axis()[0], m.c.op().axis()[1], 4, 4);
  auto [ko, ki] = s[m.c].Split(m.c.op().reduce_axis()[0], 4);
  s[m.c].Reorder({xo, yo, ko, xi, yi, ki});
  s[m.c].Tensorize(xi, "unit.mma4");
  EXPECT_NE(tenon::Lower(s, m.args()).str().find("call @unit.mma4.update"), std::string::npos);
  ExpectProduct(tenon::Build(s, m.args()).GetFunction("main"), 16);
}

// A program of C, made by the system's compiler of what export_to_c wrote.
void ExpectCProgramRuns(const std::string& folder, const std::string& linked) {
  std::ofstream(folder + "/main.c") << R"(
#include "product.h"
_Alignas(64) static char workspace[product_WORKSPACE_BYTES + 1];
int main(void) {
  float a[64], b[64], c[64];
  for (int i = 0; i < 64; ++i) a[i] = 1, b[i] = 2, c[i] = 0;
  return product(a, b, c, workspace) == 0 && c[0] == 16 && c[63] == 16 ? 0 : 1;
}
)";
  std::string command = "cd " + folder +
                        " && sed -i 's/product_W/PRODUCT_W/' main.c && " TENON_CC
                        " -std=c11 -Wall -Wextra -Werror main.c " +
                        linked + " -o main -lm && ./main";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST(Ir, CProgramsLinkWhatIsExported) {
  MatMul m(8);
  tenon::Library library = tenon::Build(tenon::CreateSchedule({m.c}), m.args());
  std::string folder = testing::TempDir() + "tenon_export_to_c";
  std::filesystem::create_directories(folder);
  for (const char* file : {"product.o", "product.c"}) {
    library.ExportToC(folder + "/" + file, "product");
    ExpectCProgramRuns(folder, file);
  }
  std::filesystem::remove_all(folder);
}

TEST(Ir, TargetCIsSourceThatRuns) {
  MatMul m(8);
  tenon::Library library =
      tenon::Build(tenon::CreateSchedule({m.c}), m.args(), tenon::Target("c"), "product");
  EXPECT_NE(library.GetSource().find("#include <stdint.h>"), std::string::npos);
  ExpectProduct(library.GetFunction("product"), 8);
  ExpectProduct(library.GetFunction("main"), 8);
}

}  // namespace
