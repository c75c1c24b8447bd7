// Operands on a device whose memory is the host's: what lies beside one is seen, and what lies
// between its guards is not.
#include "measure/operand_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <vector>

namespace tenon::measure {
namespace {

class DeviceOperand : public testing::Test {
 protected:
  // The driver is looked for once; other tests start processes, which look for themselves.
  static void SetUpTestSuite() {
    setenv("TENON_CUDA_DRIVER", FAKE_CUDA, 1);
    device_ = DeviceOf("cuda");
    unsetenv("TENON_CUDA_DRIVER");
  }
  static Expected<tn_dl_device> device_;
};
Expected<tn_dl_device> DeviceOperand::device_ = MakeError("not looked for");

TEST_F(DeviceOperand, KnowsWhatWasWrittenBeside) {
  ASSERT_TRUE(device_) << ToString(device_.errors());
  for (const size_t bytes : {0, 1, 4095, 4096, 4097, 100003}) {
    Expected<OperandMemory> memory = OperandMemory::Make(*device_, bytes);
    ASSERT_TRUE(memory) << ToString(memory.errors());
    std::vector<std::byte> in(bytes, std::byte{7}), out(bytes);
    ASSERT_TRUE(memory->Write(in.data()));
    ASSERT_TRUE(memory->Read(out.data()));
    EXPECT_EQ(out, in);
    EXPECT_TRUE(memory->IsWhole().value()) << bytes;

    auto* data = static_cast<std::byte*>(memory->data());
    if (bytes > 0) data[0] = data[bytes - 1] = std::byte{1};
    EXPECT_TRUE(memory->IsWhole().value()) << "its own bytes, of " << bytes;
    const auto end = static_cast<std::ptrdiff_t>(bytes);
    for (const std::ptrdiff_t beside :
         {std::ptrdiff_t{-1}, std::ptrdiff_t{-4096}, end, end + 4095}) {
      const std::byte before = data[beside];
      data[beside] = std::byte{0};
      EXPECT_FALSE(memory->IsWhole().value()) << beside << " of " << bytes;
      data[beside] = before;
      EXPECT_TRUE(memory->IsWhole().value());
    }
  }
}

}  // namespace
}  // namespace tenon::measure
