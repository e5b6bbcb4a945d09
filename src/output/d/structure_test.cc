// SPDX-License-Identifier: Apache-2.0
#include "output/d/structure.h"

#include <gtest/gtest.h>

#include "output/d/fake_host.h"

namespace clew::output::d {
namespace {

using query::d::Tag;
using query::d::TypeId;
using query::d::TypeMember;
using query::d::TypeTable;

class StructureTest : public testing::Test {
 protected:
  TypeId define(Tag tag, const std::string& name, std::vector<TypeMember> members) {
    const TypeId type = types_.declare(tag, name);
    EXPECT_TRUE(types_.define_record(type, std::move(members)).has_value());
    return type;
  }
  TypeId base(std::string_view name) { return types_.find_base(name); }
  std::string shown(TypeId type, std::span<const uint8_t> bytes) {
    std::string out;
    append_structure(types_, type, bytes, out);
    return out;
  }
  std::string shown(TypeId type, const std::vector<uint64_t>& words) {
    const std::vector<uint8_t> bytes = bytes_of(words);
    return shown(type,
                 std::span(bytes).first(std::min<size_t>(bytes.size(), types_.size_of(type))));
  }

  TypeTable types_;
};

TEST_F(StructureTest, NumbersHaveTheirTypeInFront) {
  struct Case {
    std::string_view type;
    uint64_t value;
    std::string_view expected;
  };
  const Case cases[] = {
      {"int", 0xffffffff, "(int)-1"},
      {"unsigned int", 0xffffffff, "(unsigned int)4294967295"},
      {"uint64_t", UINT64_MAX, "(uint64_t)18446744073709551615"},
      {"short", 0x8000, "(short)-32768"},
      {"char", 'x', "(char)'x'"},
      {"char", 7, "(char)7"},
      {"uint8_t", 'x', "(uint8_t)120"},
      {"pid_t", 42, "(pid_t)42"},
      {"double", 0x3ff8000000000000, "(double)1.5"},
      {"float", 0x3e800000, "(float)0.25"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(shown(base(each.type), {each.value}), each.expected);
}

TEST_F(StructureTest, PointersAreHexadecimal) {
  EXPECT_EQ(shown(types_.pointer_to(base("char")), {0xffff8880}), "(char *)0xffff8880");
}

TEST_F(StructureTest, EnumsShowTheirNames) {
  const TypeId type = types_.declare(Tag::Enum, "color");
  ASSERT_TRUE(types_.define_enum(type, {{"RED", 0}, {"GREEN", 1}, {"NONE", -1}}).has_value());
  EXPECT_EQ(shown(type, {1}), "(enum color)GREEN");
  EXPECT_EQ(shown(type, {0xffffffff}), "(enum color)NONE");
  EXPECT_EQ(shown(type, {7}), "(enum color)7");
  const TypeId nameless = types_.declare(Tag::Enum, "");
  ASSERT_TRUE(types_.define_enum(nameless, {{"ONE", 1}}).has_value());
  EXPECT_EQ(shown(nameless, {1}), "(enum)ONE");
}

TEST_F(StructureTest, MembersAreNamedAndIndentedByFour) {
  const TypeId point = define(Tag::Struct, "point", {{"x", base("int")}, {"y", base("int")}});
  const TypeId line = define(Tag::Struct, "line", {{"from", point}, {"to", point}});
  EXPECT_EQ(shown(point, {0x0000000200000001}),
            "(struct point) {\n"
            "    .x = (int)1,\n"
            "    .y = (int)2,\n"
            "}");
  EXPECT_EQ(shown(line, {0x0000000200000001, 0x0000000400000003}),
            "(struct line) {\n"
            "    .from = (struct point) {\n"
            "        .x = (int)1,\n"
            "        .y = (int)2,\n"
            "    },\n"
            "    .to = (struct point) {\n"
            "        .x = (int)3,\n"
            "        .y = (int)4,\n"
            "    },\n"
            "}");
}

TEST_F(StructureTest, ZeroMembersAreLeftOut) {
  const TypeId point = define(Tag::Struct, "point", {{"x", base("int")}, {"y", base("int")}});
  EXPECT_EQ(shown(point, {0x0000000200000000}), "(struct point) {\n    .y = (int)2,\n}");
  EXPECT_EQ(shown(point, {0}), "(struct point) {\n}");
}

TEST_F(StructureTest, UnionsAndAnonymousMembersAreShown) {
  const TypeId inner = define(Tag::Union, "", {{"i", base("int")}, {"c", base("char")}});
  const TypeId outer = define(Tag::Struct, "outer", {{"", inner}, {"n", base("int")}});
  EXPECT_EQ(shown(outer, {0x0000000500000041}),
            "(struct outer) {\n"
            "    (union) {\n"
            "        .i = (int)65,\n"
            "        .c = (char)'A',\n"
            "    },\n"
            "    .n = (int)5,\n"
            "}");
}

TEST_F(StructureTest, BitFieldsAreTakenOutOfTheirWord) {
  const TypeId flags = define(Tag::Struct, "flags",
                              {{"a", base("unsigned int"), 0, 3},
                               {"b", base("int"), 0, 2},
                               {"zero", base("unsigned int"), 0, 1},
                               {"c", base("unsigned int"), 0, 12}});
  // a = 5, b = -1 (two bits), zero = 0, c = 0xabc from bit 6 on.
  EXPECT_EQ(shown(flags, {5 | (3 << 3) | (0xabc << 6)}),
            "(struct flags) {\n"
            "    .a = (unsigned int)5,\n"
            "    .b = (int)-1,\n"
            "    .c = (unsigned int)2748,\n"
            "}");
}

TEST_F(StructureTest, ArraysAreInBrackets) {
  const TypeId pair = types_.array_of(base("int"), 2);
  EXPECT_EQ(shown(pair, {0x0000000200000001}),
            "(int [2]) [\n"
            "    (int)1,\n"
            "    (int)2,\n"
            "]");
  EXPECT_EQ(shown(pair, {1}), "(int [2]) [\n    (int)1,\n]");
}

TEST_F(StructureTest, CharacterArraysAreStrings) {
  const TypeId name = types_.array_of(base("char"), 8);
  EXPECT_EQ(shown(name, bytes_of("bash", 8)), "(char [8])\"bash\"");
  EXPECT_EQ(shown(name, bytes_of("a\"b\nc", 8)), "(char [8])\"a\\\"b\\nc\"");
  const TypeId task = define(Tag::Struct, "task", {{"pid", base("int")}, {"comm", name}});
  std::vector<uint8_t> bytes = bytes_of({9});
  bytes.resize(4);
  const std::vector<uint8_t> comm = bytes_of("init", 8);
  bytes.insert(bytes.end(), comm.begin(), comm.end());
  EXPECT_EQ(shown(task, bytes),
            "(struct task) {\n"
            "    .pid = (int)9,\n"
            "    .comm = (char [8])\"init\",\n"
            "}");
}

TEST_F(StructureTest, DotsStandForWhatWasNotRecorded) {
  const TypeId point = define(Tag::Struct, "point", {{"x", base("int")}, {"y", base("int")}});
  const std::vector<uint8_t> bytes = bytes_of({1});
  EXPECT_EQ(shown(point, std::span(bytes).first(4)),
            "(struct point) {\n"
            "    .x = (int)1,\n"
            "    ...\n"
            "}");
}

TEST_F(StructureTest, WhatHasNoSizeIsDots) {
  EXPECT_EQ(shown(types_.declare(Tag::Struct, "unknown"), std::vector<uint64_t>{}),
            "(struct unknown)...");
}

}  // namespace
}  // namespace clew::output::d
