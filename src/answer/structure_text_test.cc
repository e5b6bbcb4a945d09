// SPDX-License-Identifier: Apache-2.0
#include "answer/structure_text.h"

#include <cstring>

#include <gtest/gtest.h>

namespace clew::answer {
namespace {

using query::Structure;
using query::Type;

Structure number(const char* name, uint64_t offset_bytes, const Type& type) {
  return {.name = name,
          .kind = Structure::Kind::Number,
          .type = type,
          .offset_bytes = offset_bytes,
          .size_bytes = type.size_bytes};
}

Structure record(std::vector<Structure> members, uint64_t size_bytes) {
  return {.name = "",
          .kind = Structure::Kind::Record,
          .size_bytes = size_bytes,
          .members = std::move(members)};
}

std::string shown(const Structure& structure, std::string_view bytes) {
  query::Query query;
  query.enumerations.push_back({.name = "state", .enumerators = {{"PAID", 1}, {"FAILED", -1}}});
  query.enumerations.push_back(
      {.name = "flags", .enumerators = {{"READ", 1}, {"WRITE", 2}}, .masks = {1, 2}});
  return structure_text(query, structure, bytes);
}

TEST(StructureText, OfNumbersHasTheirSigns) {
  const Type wide{};
  const Type byte{.size_bytes = 1, .is_signed = false};
  const Type address{.is_signed = false, .unit = query::Unit::Address};
  const std::string bytes = std::string(8, '\xFF') + "\xFF" + std::string("\x10\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(shown(record({number("a", 0, wide), number("b", 8, byte), number("c", 9, address)}, 17),
                  bytes),
            R"({"a": -1, "b": 255, "c": "0x10"})");
}

TEST(StructureText, OfEnumerationsHasTheirNames) {
  const Type state{.size_bytes = 4, .enumeration = 1};
  const Type flags{.size_bytes = 4, .is_signed = false, .enumeration = 2};
  const std::string bytes("\xFF\xFF\xFF\xFF\x07\0\0\0\x05\0\0\0", 12);
  EXPECT_EQ(shown(record({number("a", 0, state), number("b", 4, flags), number("c", 8, state)}, 12),
                  bytes),
            R"({"a": "FAILED", "b": "READ|WRITE|0x4", "c": 5})");
}

TEST(StructureText, OfBitFieldsHasTheirBits) {
  Structure low = number("low", 0, {.size_bytes = 4, .is_signed = false});
  low.bit_size = 3;
  Structure high = number("high", 0, {.size_bytes = 4});
  high.bit_offset = 3;
  high.bit_size = 5;
  EXPECT_EQ(shown(record({low, high}, 4), "\xFE"), R"({"low": 6, "high": -1})");
}

TEST(StructureText, OfTextEndsAtItsZeroAndIsEscaped) {
  const Structure text{.name = "text", .kind = Structure::Kind::Text, .size_bytes = 8, .count = 8};
  EXPECT_EQ(shown(text, std::string("a\"\n\0xyz", 8)), R"("a\"\u000a")");
  EXPECT_EQ(shown(text, "abcdefghij"), R"("abcdefgh")");
}

TEST(StructureText, SaysWhatIsNotThere) {
  const Type word{.size_bytes = 4};
  const Structure odd{.name = "odd", .offset_bytes = 4, .size_bytes = 16};
  EXPECT_EQ(shown(record({number("a", 0, word), odd, number("b", 4096, word)}, 5000),
                  std::string("\x07\0\0\0", 4)),
            R"({"a": 7, "odd": "...", "b": "..."})");
  const Structure list{.name = "",
                       .kind = Structure::Kind::Array,
                       .size_bytes = 400,
                       .count = 100,
                       .members = {number("", 0, word)}};
  const std::string text = shown(list, std::string(400, '\0'));
  EXPECT_EQ(text.substr(0, 7), "[0, 0, ");
  EXPECT_EQ(text.substr(text.size() - 8), ", \"...\"]");
}

}  // namespace
}  // namespace clew::answer
