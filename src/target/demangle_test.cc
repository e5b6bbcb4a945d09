// SPDX-License-Identifier: Apache-2.0
#include "target/demangle.h"

#include <fstream>

#include <gtest/gtest.h>

#include "target/test_support.h"

namespace clew::target {
namespace {

TEST(PlainNameTest, OnlyTheNameIsLeft) {
  const auto cases = {
      std::pair{"ns::C::f(long) const", "ns::C::f"},
      std::pair{"int ns::twice<int>(int)", "ns::twice<int>"},
      std::pair{"std::vector<int, std::allocator<int> > ns::f<(char)40>(int (*)(int))",
                "ns::f<(char)40>"},
      std::pair{"ns::C::operator()(int) const", "ns::C::operator()"},
      std::pair{"ns::C::operator<(ns::C const&) const", "ns::C::operator<"},
      std::pair{"bool ns::operator< <int>(int)", "ns::operator< <int>"},
      std::pair{"std::ostream& std::operator<< <char>(std::ostream&)", "std::operator<< <char>"},
      std::pair{"ns::C::operator->() const", "ns::C::operator->"},
      std::pair{"ns::C::operator unsigned int() const", "ns::C::operator unsigned int"},
      std::pair{"operator new(unsigned long)", "operator new"},
      std::pair{"(anonymous namespace)::hidden(int)", "(anonymous namespace)::hidden"},
      std::pair{"ns::f() const::{lambda(int)#1}::operator()(int) const",
                "ns::f() const::{lambda(int)#1}::operator()"},
      std::pair{"auto ns::f()::{lambda(auto:1)#1}::operator()<int>(int) const",
                "ns::f()::{lambda(auto:1)#1}::operator()<int>"},
      std::pair{"void (*ns::signal(int, void (*)(int)))(int)", "ns::signal"},
      std::pair{"ns::name[abi:cxx11](int)", "ns::name"},
      std::pair{"ns::C::~C() [clone .isra.0]", "ns::C::~C"},
      std::pair{"non-virtual thunk to ns::C::f(int)", "non-virtual thunk to ns::C::f"},
      std::pair{"int constant_time<int>(int)", "constant_time<int>"},
      std::pair{"decltype (f(x)) ns::g<int>(int&&) &&", "ns::g<int>"},
      std::pair{"main", "main"},
  };
  for (const auto& [demangled, plain] : cases) {
    EXPECT_EQ(plain_name(demangled), plain) << demangled;
  }
}

TEST(CloneTest, SuffixesSayWhatACopyIs) {
  EXPECT_EQ(clone_kind("discount.constprop.0.isra.0"), CloneKind::Copy);
  EXPECT_EQ(clone_suffix_at("discount.constprop.0.isra.0"), 8U);
  EXPECT_EQ(clone_kind("f.part.0"), CloneKind::Part);
  EXPECT_EQ(clone_kind("f.isra.0.cold"), CloneKind::Cold);
  EXPECT_EQ(clone_kind("f.llvm.1234567890"), CloneKind::Copy);
  EXPECT_EQ(clone_kind("main.main"), CloneKind::None);  // Go.
  EXPECT_EQ(clone_kind("f"), CloneKind::None);
  EXPECT_EQ(clone_kind(".cold"), CloneKind::None);
  EXPECT_EQ(clone_suffix_at("f.12"), 4U);
}

std::string demangled(std::string_view linkage) {
  Demangler demangler;
  return std::string(demangler.demangle(linkage).text);
}

TEST(DemanglerTest, CNamesAndBrokenNamesAreLeftAlone) {
  for (const std::string_view name : {"main", "_start", "_Z", "_ZN", "_R", "_RNv", "_RB_", "_Zxyz",
                                      "_RNvC9999999999999999999a"}) {
    EXPECT_EQ(demangled(name), "") << name;
  }
}

TEST(DemanglerTest, RustNamesAreReadInBothManglings) {
  EXPECT_EQ(demangled("_ZN4core3ptr13drop_in_place17h0123456789abcdefE"),
            "core::ptr::drop_in_place");
  EXPECT_EQ(demangled("_ZN61_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..fmt..Debug$GT$3fmt"
                      "17h0123456789abcdefE"),
            "<alloc::vec::Vec<T> as core::fmt::Debug>::fmt");
  EXPECT_EQ(demangled("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
  EXPECT_EQ(demangled("_RNCNvC4main3run0"), "main::run::{closure#0}");
  EXPECT_EQ(demangled("_RINvC4main3runjKj3_E"), "main::run::<usize, 3>");
  EXPECT_EQ(demangled("_RNvC4mainu8gdel_5qa"), "main::gödel");
}

// A name of forty bytes whose back references would print more than memory holds.
TEST(DemanglerTest, BackReferencesDoNotExplode) {
  std::string name = "_RINvC1a1b";
  for (int i = 0; i < 12; ++i) {
    name += "TB6_B6_B6_B6_B6_E";
  }
  EXPECT_LE(demangled(name + "E").size(), 20000U);
}

// All names of a large library, against the demangler of binutils.
void compare_with_cxxfilt(const std::string& module, std::string_view prefix, size_t names_min) {
  const test::TemporaryDirectory directory;
  const std::string list = directory.file("names");
  test::run("nm -D --defined-only " + module + " 2>/dev/null > " + list + ".d; nm --defined-only " +
            module + " 2>/dev/null > " + list + ".s; cat " + list + ".d " + list +
            ".s | sed 's/@.*//' | awk '$2 ~ /^[TtWw]$/ {print $3}' | grep '^" +
            std::string(prefix) + "' | grep -v '[.]' | sort -u | head -20000 > " + list);
  const auto names = test::lines_of(test::run("cat " + list));
  // Without the hashes of crates and the types of constants, which tell a user nothing.
  const auto expected = test::lines_of(test::run(
      "c++filt < " + list +
      " | sed -E 's/\\[[0-9a-f]{1,16}\\]//g; s/: (bool|char|[iu](8|16|32|64|128|size))//g; "
      "s/::h[0-9a-f]{16}$//'"));
  ASSERT_EQ(names.size(), expected.size());
  ASSERT_GE(names.size(), names_min);
  size_t different = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string ours = demangled(names[i]);
    if (ours == expected[i] || (ours.empty() && expected[i] == names[i])) continue;
    if (++different < 10) ADD_FAILURE() << names[i] << "\n" << ours << "\n" << expected[i];
  }
  EXPECT_EQ(different, 0U) << "of " << names.size();
}

TEST(DemanglerTest, RustNamesAgreeWithBinutils) {
  ASSERT_TRUE(test::fixture_exists("crates_v0")) << "no rustc";
  compare_with_cxxfilt(test::fixture("crates_v0"), "_R", 100);
  compare_with_cxxfilt(test::fixture("crates_legacy"), "_ZN.*17h", 100);
}

}  // namespace
}  // namespace clew::target
