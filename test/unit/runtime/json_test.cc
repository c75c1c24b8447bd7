#include "runtime/json.h"

#include <cstring>
#include <string>
#include <vector>

#include "testing.h"

namespace tenon::runtime {
namespace {

JsonValue Json(const char* text) { return {text, text + strlen(text)}; }
std::string Text(JsonValue value) { return {value.begin, value.end}; }
std::string Decode(const char* text) {
  std::vector<char> room(JsonStringRoom(Json(text)));
  JsonDecode(Json(text), room.data());
  return room.data();
}

TEST(Json, Find) {
  JsonValue object = Json(R"({"a": 1, "b" : [1, {"c": "}]"}, []] ,"n":{"a":2},"s":"x\"y"})");
  EXPECT_EQ(Text(JsonFind(object, "a")), "1");
  EXPECT_EQ(Text(JsonFind(object, "b")), R"([1, {"c": "}]"}, []])");
  EXPECT_EQ(Text(JsonFind(JsonFind(object, "n"), "a")), "2");
  EXPECT_EQ(Text(JsonFind(object, "s")), R"("x\"y")");
  EXPECT_FALSE(JsonFind(object, "c").exists());
  EXPECT_EQ(JsonInt(JsonFind(object, "a"), -1), 1);
  EXPECT_EQ(JsonInt(JsonFind(object, "s"), -1), -1);
}

TEST(Json, Items) {
  EXPECT_EQ(JsonCount(Json("[]")), 0);
  EXPECT_EQ(JsonCount(Json(" [ ]")), 0);
  EXPECT_EQ(JsonCount(Json("[1]")), 1);
  EXPECT_EQ(JsonCount(Json("[1, [2, 3], \"a,b\", {\"x\": [4, 5]}]")), 4);
  EXPECT_EQ(JsonCount(Json("{\"a\": 1, \"b\": 2}")), 2);
  EXPECT_EQ(JsonCount(Json("7")), 0);
}

TEST(Json, Strings) {
  EXPECT_EQ(Decode(R"("plain")"), "plain");
  EXPECT_EQ(Decode(R"("")"), "");
  EXPECT_EQ(Decode(R"("\"\\\/\n\t")"), "\"\\/\n\t");
  EXPECT_EQ(Decode(R"("\u00e9\u4e2d\ud83d\ude00")"), "é中😀");
  EXPECT_EQ(Decode(R"("\ud83d!")"), "\xef\xbf\xbd!");
  EXPECT_EQ(Decode("12"), "12");
}

TEST(Json, BrokenTextIsReadInBounds) {
  // Every prefix of a document, in memory of exactly its size.
  const std::string whole = R"({"a": [1, {"b": "\ud83d\ude00\\"}], "c": "d\u00")";
  for (size_t size = 0; size <= whole.size(); ++size) {
    std::vector<char> text(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    JsonValue value = {text.data(), text.data() + size};
    JsonFind(JsonFind(value, "a"), "b");
    JsonValue last = JsonFind(value, "c");
    JsonCount(value);
    std::vector<char> room(JsonStringRoom(last));
    JsonDecode(last, room.data());
  }
}

}  // namespace
}  // namespace tenon::runtime
