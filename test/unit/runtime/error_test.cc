#include "runtime/core/error.h"

#include <string>
#include <thread>
#include <vector>

#include "tenon/kernel_abi.h"
#include "testing.h"

namespace tenon::runtime {
namespace {

tn_msg_part Text(const char* text) { return {TN_MSG_TEXT, 0, {text}}; }
tn_msg_part Number(int32_t kind, int64_t i) {
  tn_msg_part part{kind, 0, {nullptr}};
  part.u.i = i;
  return part;
}
std::string Raise(std::vector<tn_msg_part> parts) {
  EXPECT_EQ(tn_core_raise("ValueError", parts.data(), static_cast<int32_t>(parts.size())), -1);
  return tn_last_error(nullptr);
}
std::string DType(uint32_t code, uint32_t bits, uint32_t lanes = 1) {
  return Raise({Number(TN_MSG_DTYPE, code | bits << 8 | int64_t{lanes} << 16)});
}

TEST(Error, PartsAreJoined) {
  tn_msg_part half{TN_MSG_DOUBLE, 0, {nullptr}};
  half.u.f = 0.5;
  EXPECT_EQ(Raise({Text("n="), Number(TN_MSG_INT, -7), Text(nullptr), Text(", x="), half, Text(" "),
                   Number(TN_MSG_C_STRING, reinterpret_cast<intptr_t>("name")),
                   Number(TN_MSG_C_STRING, 0)}),
            "n=-7, x=0.5 name");
  const char* kind;
  tn_last_error(&kind);
  EXPECT_STREQ(kind, "ValueError");
  EXPECT_EQ(Raise({}), "");
}

TEST(Error, Types) {
  EXPECT_EQ(DType(TN_DL_FLOAT, 32), "float32");
  EXPECT_EQ(DType(TN_DL_INT, 8, 4), "int8x4");
  EXPECT_EQ(DType(TN_DL_UINT, 64), "uint64");
  EXPECT_EQ(DType(TN_DL_BOOL, 8), "bool");
  EXPECT_EQ(DType(TN_DL_BFLOAT, 16), "bfloat16");
  EXPECT_EQ(DType(TN_DL_FLOAT8_E4M3FN, 8), "float8_e4m3fn");
  EXPECT_EQ(DType(99, 8), "dtype(code=99, bits=8, lanes=1)");
  EXPECT_EQ(Raise({Number(TN_MSG_DEVICE_TYPE, TN_DL_CUDA)}), "cuda");
  EXPECT_EQ(Raise({Number(TN_MSG_DEVICE_TYPE, 77)}), "device(type=77)");
}

TEST(Error, LongMessagesAreCut) {
  std::string word(1000, 'x');
  std::vector<tn_msg_part> parts(10, Text(word.c_str()));
  EXPECT_EQ(Raise(parts), std::string(4000, 'x'));
}

TEST(Error, EachThreadHasItsOwn) {
  Raise({Text("mine")});
  std::thread([] {
    EXPECT_STREQ(tn_last_error(nullptr), "");
    Raise({Text("yours")});
  }).join();
  EXPECT_STREQ(tn_last_error(nullptr), "mine");
}

}  // namespace
}  // namespace tenon::runtime
