// SPDX-License-Identifier: Apache-2.0
#include "copy/asked_callers.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "copy/victims_testing.h"

namespace clew::copy {
namespace {

TEST(AskedCallers, AreThoseWhosePlaceIsRead) {
  const Victim victim("asked");
  const std::set<uint64_t> asked = asked_callers(victim.facts());
  std::set<std::string> names;
  for (const target::Function& one : victim.image().functions()) {
    if (asked.contains(one.address)) names.emplace(one.names.front().linkage);
  }
  EXPECT_EQ(names, (std::set<std::string>{"calls_three", "calls_who_leaves", "leaves_by_a_jump"}));
}

}  // namespace
}  // namespace clew::copy
