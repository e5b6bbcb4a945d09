// SPDX-License-Identifier: Apache-2.0
#include "answer/structure_text.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "query/fake_types.h"
#include "query/structures.h"

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

TEST(StructureText, OfRealNumbersHasAllTheirDigits) {
  const double wide = 1234567.89;
  const float narrow = 0.1F;
  std::string bytes(12, '\0');
  std::memcpy(bytes.data(), &wide, sizeof wide);
  std::memcpy(bytes.data() + sizeof wide, &narrow, sizeof narrow);
  const Type real{.kind = query::TypeKind::Float, .size_bytes = 8};
  const Type single{.kind = query::TypeKind::Float, .size_bytes = 4};
  EXPECT_EQ(shown(record({number("a", 0, real), number("b", 8, single)}, 12), bytes),
            R"({"a": 1234567.89, "b": 0.1})");
}

TEST(StructureText, OfAMemberHasItsOwnBytesAlone) {
  const Type byte{.size_bytes = 1, .is_signed = false};
  Structure short_text{.name = "a", .kind = Structure::Kind::Text, .size_bytes = 2, .count = 2};
  Structure list{.name = "b",
                 .kind = Structure::Kind::Array,
                 .offset_bytes = 2,
                 .size_bytes = 2,
                 .count = 4,  // As no compiler has it.
                 .members = {number("", 0, byte)}};
  EXPECT_EQ(shown(record({short_text, list}, 8), "abcdefgh"),
            R"({"a": "ab", "b": [99, 100, "..."]})");
}

TEST(StructureText, OfAnArrayThatIsNotThereEnds) {
  const Structure list{.name = "",
                       .kind = Structure::Kind::Array,
                       .count = UINT64_MAX,
                       .members = {number("", 0, {.size_bytes = 8})}};
  EXPECT_EQ(shown(list, "abc"), R"(["...", "..."])");
}

// Each member is all of the bytes, and so are the members of each.
TEST(StructureText, HasAnEndWhereMembersShareTheirBytes) {
  Structure shared = number("a name that is long", 0, {.size_bytes = 8});
  for (int depth = 0; depth < 3; ++depth)
    shared = record(std::vector<Structure>(30, shared), 8);
  const std::string text = shown(shared, std::string(8, '\x7F'));
  EXPECT_GT(text.size(), size_t{64} << 10);
  EXPECT_LT(text.size(), size_t{80} << 10);
}

// struct shop { int id, id, id; long far[2^62]; };
class OddTypes final : public query::FakeTypes {
 public:
  query::CType describe(query::TypeHandle type) override {
    query::CType result;
    result.name = "odd";
    result.size_bytes = type == kShop ? 64 : 8;
    result.kind = type == kShop ? query::CKind::Record : query::CKind::Integer;
    if (type == kFar) {
      result.kind = query::CKind::Array;
      result.target = kNumber;
      result.count = uint64_t{1} << 62;
    }
    return result;
  }
  std::vector<query::CMember> members(query::TypeHandle /*type*/) override {
    std::vector<query::CMember> all(4);
    for (query::CMember& each : all) {
      each.name = "id";
      each.type = kNumber;
    }
    all[3].name = "far";
    all[3].type = kFar;
    return all;
  }

  static constexpr query::TypeHandle kShop = 1;

 private:
  static constexpr query::TypeHandle kNumber = 2;
  static constexpr query::TypeHandle kFar = 3;
};

TEST(Structures, HaveNoTwoMembersOfOneNameAndNoArrayThatDoesNotFit) {
  OddTypes source;
  std::vector<query::Enumeration> enumerations;
  query::CTypes types(&source, enumerations);
  const Structure shop = query::structure_of(types, query::foreign(OddTypes::kShop));
  ASSERT_EQ(shop.members.size(), 4U);
  EXPECT_EQ(shop.members[0].name, "id");
  EXPECT_EQ(shop.members[1].name, "id#2");
  EXPECT_EQ(shop.members[2].name, "id#3");
  EXPECT_EQ(shop.members[3].kind, Structure::Kind::Unknown);
}

}  // namespace
}  // namespace clew::answer
