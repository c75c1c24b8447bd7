#include "artifact/relocatable.h"

#include <cstdlib>

#include "artifact/library_writer.h"
#include "testing.h"

namespace tenon::artifact {
namespace {

class RelocatableTest : public FolderTest {
 protected:
  // An object with four weights, all `weight`, that exports `symbol` alone.
  void MakeObject(const std::string& name, const std::string& source, const std::string& symbol,
                  float weight) {
    std::string image = ReadFile(source).value();
    LinkRequest request = Request(100);
    request.kind = OutputKind::kRelocatable;
    request.objects = {{name, image}};
    request.exports = {symbol};
    LibraryWriter writer = Take(LibraryWriter::Create(request, Path(name)));
    const float weights[] = {weight, weight, weight, weight};
    ASSERT_TRUE(writer.Write(0, std::as_bytes(std::span(weights))));
    ASSERT_TRUE(CommitTogether(Take(std::move(writer).Finish())));
  }
};

// A program with two models in it, which needs nothing else.
constexpr char kProgram[] = R"(
#include "tenon/ffi_types.h"
int32_t __tvm_ffi_main(void*, const tn_ffi_any*, int32_t, tn_ffi_any*);
int32_t __tvm_ffi_second(void*, const tn_ffi_any*, int32_t, tn_ffi_any*);
int main(void) {
  float a[5] = {1, 2, 3, 4, 5}, c[5];
  int64_t shape[] = {5};
  tn_dl_tensor x = {a, {TN_DL_CPU, 0}, 1, {TN_DL_FLOAT, 32, 1}, shape, 0, 0}, y = x;
  y.data = c;
  tn_ffi_any args[3] = {{TN_FFI_DL_TENSOR_PTR, 0, {0}}, {TN_FFI_DL_TENSOR_PTR, 0, {0}}, {TN_FFI_DL_TENSOR_PTR, 0, {0}}};
  args[0].u.v_ptr = args[1].u.v_ptr = &x;
  args[2].u.v_ptr = &y;
  tn_ffi_any result = {0, 0, {0}};
  if (__tvm_ffi_main(0, args, 3, &result) != 0 || c[4] != 10 + 7) return 1;
  if (__tvm_ffi_second(0, args, 3, &result) != 0 || c[4] != 10 + 9) return 2;
  return 0;
}
)";

TEST_F(RelocatableTest, TwoModelsInOneProgram) {
  MakeObject("first.o", TEST_MODULE_OBJECT, "__tvm_ffi_main", 7);
  MakeObject("second.o", TEST_MODULE_SECOND_OBJECT, "__tvm_ffi_second", 9);
  ASSERT_TRUE(WriteFile(Path("main.c"), kProgram));
  for (const char* linker : {"lld", "bfd"}) {
    if (linker == std::string("bfd") && system("command -v ld.bfd > /dev/null 2>&1") != 0) continue;
    std::string command = std::string(TEST_C_COMPILER) + " -I" TEST_INCLUDE_DIR " " +
                          Path("main.c") + " " + Path("first.o") + " " + Path("second.o") + " -o " +
                          Path("program") + " -fuse-ld=" + linker;
    ASSERT_EQ(system(command.c_str()), 0);
    EXPECT_EQ(system(Path("program").c_str()), 0) << linker;
  }
}

TEST_F(RelocatableTest, WeightsTooLargeForAnObject) {
  LinkRequest request = Request(uint64_t{2} << 30);
  request.kind = OutputKind::kRelocatable;
  Expected<std::string> image = LinkImage(request);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.errors()[0].message,
            "an object can hold 1073741824 bytes of weights but the model has 2147483648; compile "
            "a shared library");
}

}  // namespace
}  // namespace tenon::artifact
