// SPDX-License-Identifier: Apache-2.0
// The types of a running program: this one's.
#include "engine/d_user_types.h"

#include <gtest/gtest.h>
#include <unistd.h>

// In no namespace, so that they have plain names.
enum TracedColor { kTracedRed = 1, kTracedGreen = 5 };
struct TracedPoint {
  int x;
  short y;
};
struct TracedClient {
  unsigned id;
  const char* name;
  TracedPoint at;
  TracedClient* next;
  unsigned flags : 3;
  int small : 5;
  TracedColor color;
  long list[3];
};
TracedClient traced_client = {1, "first", {3, 4}, nullptr, 5, -3, kTracedGreen, {7, 8, 9}};

namespace clew::engine {

namespace {

using query::d::kNoType;
using query::d::Tag;
using query::d::TypeId;
using query::d::TypeKind;
using query::d::TypeTable;

// Its forward declarations are completed by what a script would ask.
class Provider final : public query::d::TypeProvider {
 public:
  Provider() { types_.add_process(getpid()); }
  TypeId find(TypeTable& table, std::string_view module, Tag tag, std::string_view name) override {
    return types_.find(table, module, tag, name);
  }
  std::optional<query::d::TypeEnumerator> find_enumerator(TypeTable&,
                                                          std::string_view name) override {
    return types_.find_enumerator(name);
  }
  Expected<Symbol> find_symbol(TypeTable&, std::string_view, std::string_view) override {
    return fail(ErrorCode::NotFound, "Unknown symbol name");
  }

 private:
  UserTypes types_;
};

class UserTypesTest : public testing::Test {
 protected:
  UserTypesTest() { table_.set_provider(&provider_); }
  TypeId client(std::string_view module = "") {
    return table_.find(module, Tag::Struct, "TracedClient");
  }

  static inline Provider provider_;  // Reading this program's DWARF takes a while.
  TypeTable table_;
};

TEST_F(UserTypesTest, RecordsHaveTheirMembersWhereTheProgramHasThem) {
  ASSERT_NE(traced_client.id, 0U);
  const TypeId type = client();
  ASSERT_NE(type, kNoType);
  EXPECT_EQ(table_.size_of(type), sizeof(TracedClient));
  EXPECT_EQ(table_.member(type, "name")->offset_bits, 8 * offsetof(TracedClient, name));
  EXPECT_EQ(table_.member(type, "list")->offset_bits, 8 * offsetof(TracedClient, list));
  EXPECT_EQ(table_.member(type, "flags")->bit_size, 3);
  EXPECT_EQ(table_.member(type, "small")->offset_bits,
            table_.member(type, "flags")->offset_bits + 3);
  EXPECT_EQ(table_.name_of(table_.member(type, "list")->type), "long [3]");
  EXPECT_FALSE(table_.member(type, "nothing").has_value());
}

TEST_F(UserTypesTest, TheyAreUserlandAndShownByTheirOwnName) {
  const TypeId type = client();
  ASSERT_NE(type, kNoType);
  EXPECT_TRUE(table_.stripped(type).is_userland);
  const TypeId next = table_.member(type, "next")->type;
  EXPECT_NE(table_.name_of(next).find("TracedClient *"), std::string::npos);
  EXPECT_EQ(table_.name_of(next).find('`'), std::string::npos);
}

TEST_F(UserTypesTest, WhatAPointerLeadsToIsCompleted) {
  const TypeId next = table_.member(client(), "next")->type;
  const TypeId target = table_.complete(table_.stripped(next).target);
  EXPECT_EQ(table_.size_of(target), sizeof(TracedClient));
}

TEST_F(UserTypesTest, ModulesAreNamedByTheProgramByFileAndByProcess) {
  const std::string pid = "pid" + std::to_string(getpid());
  EXPECT_NE(client("a.out"), kNoType);
  EXPECT_NE(client(pid), kNoType);
  EXPECT_NE(client(pid + "`a.out"), kNoType);
  EXPECT_EQ(client("libc.so.6"), kNoType);
  EXPECT_EQ(client("pid1x"), kNoType);
  EXPECT_EQ(client("pid0"), kNoType);
}

TEST_F(UserTypesTest, EnumerationsHaveTheirNames) {
  const auto value = provider_.find_enumerator(table_, "kTracedGreen");
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->value, 5);
  const TypeId type = table_.find("a.out", Tag::Enum, "TracedColor");
  ASSERT_NE(type, kNoType);
  EXPECT_EQ(table_.stripped(type).kind, TypeKind::Enum);
  EXPECT_EQ(table_.stripped(type).enumerators.size(), 2U);
}

TEST_F(UserTypesTest, WhatIsNotThereIsNoType) {
  EXPECT_EQ(table_.find("", Tag::Struct, "no_such_record"), kNoType);
  EXPECT_EQ(table_.find("a.out", Tag::None, "no_such_name"), kNoType);
}

}  // namespace
}  // namespace clew::engine
