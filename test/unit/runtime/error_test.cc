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

TEST(Error, ValuesArePutIntoAConstant) {
  const auto value = [](int32_t kind, int32_t number) {
    return tn_msg_part{kind, number, {nullptr}};
  };
  const tn_msg_part site[] = {
      {6, 0, {"TypeError"}},  Text("a="), value(TN_MSG_INT, 2),     Text(", b="),
      value(TN_MSG_DTYPE, 1), Text(", "), value(TN_MSG_C_STRING, 3)};
  const auto name = static_cast<int64_t>(reinterpret_cast<intptr_t>("name"));
  EXPECT_EQ(tn_core_raise_at(site, 2 | 32 << 8 | 1 << 16, -5, name), -1);
  const char* kind;
  EXPECT_STREQ(tn_last_error(&kind), "a=-5, b=float32, name");
  EXPECT_STREQ(kind, "TypeError");
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
