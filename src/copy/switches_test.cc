// SPDX-License-Identifier: Apache-2.0
// Which switches are understood, and how far their tables go.
#include "copy/switches.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "copy/victims_testing.h"

namespace clew::copy {
namespace {

// "4 offsets, 1 name, 1 jump; 3 addresses, …" of each table, by address; or why it is refused.
std::string switches_of(const Victim& victim, std::string_view name) {
  const uint64_t start = victim.function(name).address;
  const auto proved = prove(victim.facts(), *victim.facts().code.function_starting_at(start));
  if (!proved) {
    return fmt::format("{} +{}", copy::name(proved.error().reason), proved.error().address - start);
  }
  const Switches& found = proved->switches;
  std::string shown;
  for (uint32_t i = 0; i < found.tables.size(); ++i) {
    const auto names = std::count_if(found.names.begin(), found.names.end(),
                                     [i](const TableName& one) { return one.table == i; });
    const auto jumps = std::count_if(found.jumps.begin(), found.jumps.end(),
                                     [i](const TableJump& one) { return one.table == i; });
    const bool is_offsets = found.tables[i].kind == TableKind::Offsets;
    shown += fmt::format("{}{} {}, {} named, {} jumps", shown.empty() ? "" : "; ",
                         found.tables[i].targets.size(), is_offsets ? "offsets" : "addresses",
                         names, jumps);
  }
  return shown;
}

using Wanted = std::map<std::string, std::string>;

// Of all functions whose names begin so.
Wanted all_of(const Victim& victim, std::string_view prefix) {
  Wanted found;
  for (const target::Function& one : victim.image().functions()) {
    const std::string name(one.names.front().linkage);
    if (name.starts_with(prefix)) found[name] = switches_of(victim, name);
  }
  return found;
}

TEST(Switches, AreFoundWithTheBoundsThatTheCodeChecks) {
  const Wanted wanted = {
      {"run_addresses", "4 addresses, 1 named, 1 jumps"},
      {"run_below", "4 offsets, 1 named, 1 jumps"},
      {"run_compared", "4 offsets, 1 named, 1 jumps"},
      {"run_compared_byte", "4 offsets, 1 named, 1 jumps"},
      {"run_compared_copy", "4 offsets, 1 named, 1 jumps"},
      {"run_compared_twice", "4 offsets, 1 named, 1 jumps"},
      {"run_compared_word", "4 offsets, 1 named, 1 jumps"},
      {"run_hoisted", "4 offsets, 1 named, 1 jumps; 3 offsets, 1 named, 1 jumps"},
      {"run_joined", "4 offsets, 1 named, 1 jumps"},
      {"run_leads_out", "2 offsets, 1 named, 1 jumps"},
      {"run_masked", "4 offsets, 1 named, 1 jumps"},
      {"run_of_a_byte", "256 offsets, 1 named, 1 jumps"},
      {"run_shared", "4 offsets, 2 named, 2 jumps"},
      {"run_tail_call", ""},
      {"run_unbounded_end", "2 offsets, 1 named, 1 jumps"},
  };
  EXPECT_EQ(all_of(Victim("switches"), "run_"), wanted);
}

TEST(Switches, AreNotBoundByAComparisonOfLessThanTheIndex) {
  EXPECT_EQ(switches_of(Victim("switches"), "whole_low_byte"), "4 offsets, 1 named, 1 jumps");
}

TEST(Switches, AreNotBoundByAComparisonOnOneOfTheirWays) {
  EXPECT_EQ(switches_of(Victim("switches"), "whole_joined"), "4 offsets, 1 named, 1 jumps");
  EXPECT_EQ(switches_of(Victim("switches"), "whole_entry"), "4 offsets, 1 named, 1 jumps");
}

TEST(Switches, InProgramsAtAFixedAddressNameTablesByTheirAddress) {
  const Wanted wanted = {{"run_addresses", "3 addresses, 1 named, 1 jumps"},
                         {"run_both", "2 addresses, 2 named, 2 jumps"}};
  const Victim victim("fixed");
  EXPECT_EQ(all_of(victim, "run_"), wanted);
  EXPECT_EQ(switches_of(victim, "refused_escape"), "table-escapes +14");
}

TEST(Switches, AreRefusedWhereATableMayBeUsedOtherwise) {
  const Wanted wanted = {
      {"refused_escape", "table-escapes +12"},        {"refused_late_escape", "table-escapes +23"},
      {"refused_no_table", "unresolved-jump +8"},     {"refused_other_sum", "unresolved-jump +24"},
      {"refused_short_table", "unbounded-table +21"}, {"refused_spill", "unresolved-jump +24"},
      {"refused_unbounded", "unbounded-table +14"},
  };
  EXPECT_EQ(all_of(Victim("switches"), "refused_"), wanted);
}

}  // namespace
}  // namespace clew::copy
