// SPDX-License-Identifier: Apache-2.0
#include "recorder/short_name.h"

#include <string>

#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

TEST(ShortName, LeavesNamesThatFit) {
  EXPECT_EQ(short_name("std::vector<int>::push_back", 60), "std::vector<int>::push_back");
  EXPECT_EQ(short_name("a_function_of_c_whose_name_is_long", 10),
            "a_function_of_c_whose_name_is_long");
}

TEST(ShortName, LeavesOutWhatIsFurthestIn) {
  const std::string name = "std::map<Key, std::vector<Value, Allocator<Value>>>::at(Key)";
  EXPECT_EQ(short_name(name, 58), "std::map<Key, std::vector<Value, Allocator<...>>>::at(Key)");
  EXPECT_EQ(short_name(name, 50), "std::map<Key, std::vector<...>>::at(Key)");
  EXPECT_EQ(short_name(name, 30), "std::map<...>::at(Key)");
  EXPECT_EQ(short_name(name, 5), "std::map<...>::at(Key)");
}

TEST(ShortName, KnowsOperators) {
  EXPECT_EQ(short_name("operator<< <std::char_traits<char> >(std::ostream&)", 20),
            "operator<< <...>(std::ostream&)");
  EXPECT_EQ(short_name("Pointer<Something>::operator->() const", 20),
            "Pointer<...>::operator->() const");
  EXPECT_EQ(short_name("Wide<Something>::operator<=>(Wide<Something> const&)", 20),
            "Wide<...>::operator<=>(Wide<...> const&)");
  EXPECT_EQ(short_name("my_operator<Something>::go()", 5), "my_operator<...>::go()");
}

TEST(ShortName, TakesComparisonsForNoBrackets) {
  EXPECT_EQ(short_name("Chosen<((3)>(2)), Other>::run()", 5), "Chosen<...>::run()");
  EXPECT_EQ(short_name("Chosen<(a<b), Something>::run()", 5), "Chosen<...>::run()");
  EXPECT_EQ(short_name("f(decltype (a->b), Sequence<Something>)", 5),
            "f(decltype (a->b), Sequence<...>)");
}

TEST(ShortName, GivesSomethingForAnyText) {
  EXPECT_EQ(short_name("<<<<<<<<", 2), "<<<<<<<<");
  EXPECT_EQ(short_name(">>>>>>>>", 2), ">>>>>>>>");
  EXPECT_EQ(short_name("operator", 2), "operator");
  EXPECT_EQ(short_name("a)b}c>d<e(f{g", 2), "a)b}c>d<e(f{g");
  const std::string deep = std::string(5'000, '<') + std::string("inner") + std::string(5'000, '>');
  EXPECT_EQ(short_name(deep, 5), "<...>");
}

}  // namespace
}  // namespace clew::recorder
