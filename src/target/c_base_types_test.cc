// SPDX-License-Identifier: Apache-2.0
#include "target/c_base_types.h"

#include <gtest/gtest.h>

namespace clew::target {
namespace {

TEST(CBaseTypes, HaveOneSpellingInWhateverOrderTheirWordsStand) {
  EXPECT_EQ(c_base_name("long unsigned int"), "unsigned long");
  EXPECT_EQ(c_base_name("unsigned long int"), "unsigned long");
  EXPECT_EQ(c_base_name("unsigned  long"), "unsigned long");
  EXPECT_EQ(c_base_name("long long int"), "long long");
  EXPECT_EQ(c_base_name("short unsigned int"), "unsigned short");
  EXPECT_EQ(c_base_name("unsigned"), "unsigned int");
  EXPECT_EQ(c_base_name("signed"), "int");
  EXPECT_EQ(c_base_name("signed char"), "signed char");
  EXPECT_EQ(c_base_name("__int128 unsigned"), "unsigned __int128");
}

TEST(CBaseTypes, LeaveOtherNamesAlone) {
  for (const char* name : {"", "char", "long double", "_Bool", "pid_t", "ns::long", "u long"})
    EXPECT_EQ(c_base_name(name), name);
}

TEST(CBaseTypes, AreNamedByTheirOneSpelling) {
  for (const CInteger& integer : kCIntegers)
    EXPECT_EQ(c_base_name(integer.name), integer.name);
}

}  // namespace
}  // namespace clew::target
