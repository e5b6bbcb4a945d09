// SPDX-License-Identifier: Apache-2.0
// Why functions are not copied, each for one reason.
#include "copy/prove.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "copy/victims_testing.h"

namespace clew::copy {
namespace {

TEST(Prove, RefusesEachForItsReason) {
  const Victim victim("reasons");
  std::map<std::string, std::string> found;
  for (const target::Function& one : victim.image().functions()) {
    const auto index = *victim.facts().code.function_starting_at(one.address);
    const auto proved = prove(victim.facts(), index);
    found[std::string(one.names.front().linkage)] =
        proved ? "proved"
               : fmt::format("{} +{}", name(proved.error().reason),
                             proved.error().address - one.address);
  }
  const std::map<std::string, std::string> wanted = {
      {"address_prefix", "unsupported +0"},
      {"calls_itself", "proved"},
      {"chosen", "resolver +0"},
      {"inner", "into-middle +0"},
      {"into_middle", "into-middle +2"},
      {"kernel", "system-call +5"},
      {"label", "label-escapes +0"},
      {"no_code", "no-code +0"},
      {"outer", "overlaps +2"},
      {"own_place", "reads-own-place +0"},
      {"own_start", "proved"},
      {"plain", "proved"},
      {"restarts", "rseq +1"},
      {"signal_return", "system-call +0"},
      {"size_prefix", "unsupported +2"},
      {"stops", "trap +4"},
      {"switches_stack", "stack-switch +17"},
      {"traps", "proved"},
      {"undecodable", "undecodable +2"},
  };
  EXPECT_EQ(found, wanted);
}

TEST(Prove, CountsEachFunctionOnceWithItsBytes) {
  const Victim victim("reasons");
  EXPECT_EQ(victim.proof().proved.size(), 4U);
  EXPECT_EQ(victim.proof().proved.size() + victim.proof().refused.size(),
            victim.image().functions().size());
  uint64_t size = 0;
  for (const target::Function& one : victim.image().functions())
    size += one.size_bytes;
  EXPECT_EQ(victim.proof().proved_bytes + victim.proof().refused_bytes, size);
}

TEST(Reasons, HaveAName) {
  for (unsigned i = 0; i < kReasons; ++i) {
    EXPECT_FALSE(name(static_cast<Reason>(i)).empty());
    EXPECT_FALSE(sentence(static_cast<Reason>(i)).empty());
  }
}

}  // namespace
}  // namespace clew::copy
