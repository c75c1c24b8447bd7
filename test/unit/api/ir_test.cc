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

TEST(Ir, ModulesAreJoined) {
  MatMul m(8), other(4);
  const tenon::IrModule one = tenon::CreateFunc(m.args(), "one");
  const tenon::IrModule two = tenon::CreateFunc(other.args(), "two");
  tenon::Library both = tenon::Build(tenon::IrModule::Joined({one, two, one}));
  EXPECT_EQ(both.functions(), (std::vector<std::string>{"one", "two"}));
  ExpectProduct(both.GetFunction("one"), 8);
  ExpectProduct(both.GetFunction("two"), 4);
  EXPECT_THROW(tenon::IrModule::Joined({one, tenon::CreateFunc(other.args(), "one")}),
               tenon::Error);
}

TEST(Ir, BlocksHaveTheBuffersOfTheirDeclarations) {
  MatMul m(8);
  IrSchedule s(tenon::CreateFunc(m.args()));
  EXPECT_EQ(s.GetReads("C"), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(s.GetWrites("C"), (std::vector<std::string>{"C"}));
  EXPECT_THROW(s.GetReads("nothing"), tenon::Error);
}

TEST(Ir, ResultsOfOneOperationAreCachedTogether) {
  te::Tensor a = te::Placeholder({6}, DataType::kFloat32, "A");
  std::vector<te::Tensor> made = te::ComputeTuple(
      {6},
      [&](const std::vector<te::Var>& i) {
        return te::Tuple{{a(i[0]) + 1, a(i[0]) * 2}, {}, {}, {}};
      },
      "B");
  tenon::Schedule s = tenon::CreateSchedule(made);
  std::vector<te::Tensor> near = s.CacheWrite(made, "local");
  ASSERT_EQ(near.size(), 2u);
  s[near[0]].ComputeAt(s[made[0]], s[made[0]].op().axis()[0]);
  std::vector<float> x = {0, 1, 2, 3, 4, 5}, y(6), z(6);
  auto view = [](std::vector<float>& v) {
    return tenon::Tensor::Wrap(v.data(), {6}, DataType::kFloat32);
  };
  tenon::Build(s, {a, made[0], made[1]}).GetFunction("main")(view(x), view(y), view(z));
  EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(z, (std::vector<float>{0, 2, 4, 6, 8, 10}));
}

// What Trace::ToCpp prints for the schedule below, word for word.
void Apply(tenon::IrSchedule& s) {
  s.Decide("rows", {2, 4}, 4);       // 4
  s.Split("C.i0", {"-1", "$rows"});  // C.i0.0, C.i0.1
  s.Reorder({"C.i0.0", "C.k", "C.i0.1", "C.i1"});
  s.Annotate("C.i0.0", "producer_stages", 3);
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
            "  s.Annotate(\"C.i0.0\", \"producer_stages\", 3);\n"
            "}\n");
  EXPECT_EQ(s.trace().ToPython(),
            "def apply(s):\n"
            "    s.decide(\"rows\", [2, 4], 4)  # 4\n"
            "    s.split(\"C.i0\", [\"-1\", \"$rows\"])  # C.i0.0, C.i0.1\n"
            "    s.reorder([\"C.i0.0\", \"C.k\", \"C.i0.1\", \"C.i1\"])\n"
            "    s.annotate(\"C.i0.0\", \"producer_stages\", 3)\n");
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

// Twice the sum of a row and of the one that `m` says, by way of a tensor in between.
tenon::Library RowSums() {
  te::Var n("n", 4, 64, 4), m("m");
  te::Tensor a = te::Placeholder({n, 300}, tenon::DataType::kFloat32, "a");
  te::Tensor b = te::Compute({n, 300}, [&](te::Var i, te::Var j) { return a(i, j) * 2; }, "b");
  te::IterVar k = te::ReduceAxis(0, 300, "k");
  te::Tensor c = te::Compute({n}, [&](te::Var i) { return te::Sum(b(i, k) + b(m, k), {k}); }, "c");
  return tenon::Build(tenon::CreateSchedule({c}), {a, m, c}, tenon::Target(), "rows");
}

constexpr const char* kWrongCalls = R"(
#include <stdio.h>
#include <string.h>
#include "rows.h"
_Alignas(64) static char workspace[ROWS_WORKSPACE_BYTES + 64];
static float a[4 * 300 + 1], c[5];
static int refused(int32_t status, const char* message) {
  const char* said = rows_error();
  if (status == -1 && strncmp(said, message, strlen(message)) == 0) return 1;
  fprintf(stderr, "%d: %s, not %s\n", (int)status, said, message);
  return 0;
}
int main(void) {
  for (int i = 0; i < 4 * 300; ++i) a[i] = 1;
  if (ROWS_WORKSPACE_BYTES < 1 || rows(a, c, 4, 0, workspace) != 0 || c[3] != 1200) return 1;
  memset(c, 0, sizeof c);
  int fine = refused(rows(NULL, c, 4, 0, workspace), "ValueError: Parameter `a` expects memory but got a null pointer\nwhen calling: `rows(");
  fine &= refused(rows(a, NULL, 4, 0, workspace), "ValueError: Parameter `c` expects memory but got a null pointer");
  fine &= refused(rows((float*)((char*)a + 1), c, 4, 0, workspace), "ValueError: Parameter `a` expects data aligned to 4 bytes but its address modulo 4 is 1");
  fine &= refused(rows(a, c, 4, 0, NULL), "ValueError: Parameter `workspace` expects memory but got a null pointer");
  fine &= refused(rows(a, c, 4, 0, workspace + 4), "ValueError: Parameter `workspace` expects data aligned to 64 bytes but its address modulo 64 is 4");
  fine &= refused(rows(a, a + 8, 4, 0, workspace), "ValueError: Parameter `c` expects memory of its own but it overlaps `a`");
  fine &= refused(rows(a, c, 68, 0, workspace), "ValueError: Parameter `n` expects a value in 4..=64 but got 68");
  fine &= refused(rows(a, c, -4, 0, workspace), "ValueError: Parameter `n` expects a value in 4..=64 but got -4");
  fine &= refused(rows(a, c, 6, 0, workspace), "ValueError: Parameter `n` expects a value in 4 + multiples of 4 but got 6");
  fine &= refused(rows(a, c, 4, 4, workspace), "ValueError: Index out of range: ");
  return fine && c[0] == 0 ? 0 : 1;
}
)";

TEST(Ir, CProgramsAreToldWhatIsWrong) {
  tenon::Library library = RowSums();
  std::string folder = testing::TempDir() + "tenon_wrong_calls";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/main.c") << kWrongCalls;
  for (const char* file : {"rows.o", "rows.c"}) {
    library.ExportToC((std::filesystem::path(folder) / file).string());
    std::string command = "cd ";
    command.append(folder).append(" && " TENON_CC " -std=c11 -Wall -Wextra -Werror main.c ");
    command.append(file).append(" -o main -lm && ./main");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
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
