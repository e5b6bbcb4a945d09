// SPDX-License-Identifier: Apache-2.0
#include "output/d/stored_key.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace clew::output::d {
namespace {

using query::d::FieldKind;
using query::d::StoredForm;

query::d::KeyLayout layout() {
  query::d::KeyLayout layout;
  layout.fields = {{.kind = FieldKind::String, .offset_bytes = 0, .size_bytes = 32},
                   {.kind = FieldKind::Integer, .offset_bytes = 32},
                   {.kind = FieldKind::String, .offset_bytes = 40, .size_bytes = 8}};
  layout.size_bytes = 48;
  layout.stored = {{.form = StoredForm::CommandName, .offset_bytes = 0, .size_bytes = 16},
                   {.form = StoredForm::Whole, .offset_bytes = 16},
                   {.form = StoredForm::ProbeName, .offset_bytes = 24}};
  layout.stored_bytes = 32;
  return layout;
}

std::vector<uint8_t> stored(const char* command, uint64_t number, uint64_t place) {
  std::vector<uint8_t> bytes(32);
  std::memcpy(bytes.data(), command, std::strlen(command));
  std::memcpy(bytes.data() + 16, &number, 8);
  std::memcpy(bytes.data() + 24, &place, 8);
  return bytes;
}

std::string_view name_at(uint64_t place) {
  return place == 5 ? "getppid" : place == 6 ? "a_long_function" : "";
}

std::string text_at(const std::vector<uint8_t>& key, size_t offset) {
  return reinterpret_cast<const char*>(key.data() + offset);
}

TEST(StoredKey, GetsItsTextsBack) {
  const auto key = whole_key(layout(), stored("redis-server", 77, 5), name_at);
  ASSERT_EQ(key.size(), 48U);
  EXPECT_EQ(text_at(key, 0), "redis-server");
  uint64_t number = 0;
  std::memcpy(&number, key.data() + 32, 8);
  EXPECT_EQ(number, 77U);
  EXPECT_EQ(text_at(key, 40), "getppid");
}

TEST(StoredKey, CutsATextThatIsLongerThanStringsMayBe) {
  EXPECT_EQ(text_at(whole_key(layout(), stored("x", 0, 6), name_at), 40), "a_long_");
}

TEST(StoredKey, TakesACommandNameWithoutAnEnd) {
  EXPECT_EQ(text_at(whole_key(layout(), stored("sixteen_letters!", 0, 9), name_at), 0),
            "sixteen_letters!");
}

TEST(StoredKey, LeavesOutWhatIsNotThere) {
  const std::vector<uint8_t> half(20, 'x');
  const auto key = whole_key(layout(), half, name_at);
  EXPECT_EQ(key.size(), 48U);
  EXPECT_EQ(key[32], 0);
}

}  // namespace
}  // namespace clew::output::d
