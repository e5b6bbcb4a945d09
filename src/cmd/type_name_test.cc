// SPDX-License-Identifier: Apache-2.0
#include "cmd/type_name.h"

#include <gtest/gtest.h>

namespace clew::cmd {
namespace {

TEST(ReadableType, NamesAreAsProgramsWriteThem) {
  EXPECT_EQ(readable_type("N4shop7RefusedE"), "shop::Refused");
  EXPECT_EQ(readable_type("i"), "int");
  EXPECT_EQ(readable_type("N5boost10wrapexceptINS_7bad_getEEE"),
            "boost::wrapexcept<boost::bad_get>");
  for (const char* name : {"", "N4shop", "no type", "N4shop7Refused"})
    EXPECT_EQ(readable_type(name), name);
}

// Each level refers to what is in it again.
TEST(ReadableType, NamesThatWouldExplodeStayAsTheyAre) {
  std::string name = "1a";
  std::string part = "S_";
  for (int level = 0; level < 24; ++level) {
    name = "1bI" + name + part + "E";
    part =
        "S" + std::string(1, static_cast<char>(level < 10 ? '0' + level : 'A' + level - 10)) + "_";
  }
  EXPECT_EQ(readable_type(name), name);
  const std::string pack = "1fIJiiiiiiiiEDpDpT_E";
  EXPECT_EQ(readable_type(pack), pack);
  const std::string many(300, 'P');
  EXPECT_EQ(readable_type(many + "i"), many + "i");
}

}  // namespace
}  // namespace clew::cmd
