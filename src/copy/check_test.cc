// SPDX-License-Identifier: Apache-2.0
// Whatever is changed in a right copy, one thing at a time, makes the check refuse it.
#include "copy/check.h"

#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "code/full_decode.h"
#include "copy/victims_testing.h"

namespace clew::copy {
namespace {

// A random change of one thing; says which. Nothing to change: an empty text.
class Changes {
 public:
  explicit Changes(uint32_t seed) : random_(seed) {}

  std::string change(ModuleCopy& copy) {
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        return change_byte(copy, copy.code_size);
      case 3:
        return change_byte(copy, copy.bytes.size());
      case 4:
        return change_size(copy);
      case 5:
        return change_pc(copy);
      case 6:
        return change_function(copy);
      case 7:
        return change_table(copy);
      case 8:
        return change_fixup(copy);
      default:
        return change_order(copy);
    }
  }

 private:
  uint64_t below(uint64_t count) { return random_() % count; }
  // A bit, a little more or less, or anything.
  template <typename Word>
  void change_word(Word& word) {
    const Word before = word;
    while (word == before) {
      const uint64_t way = below(3);
      if (way == 0) word = static_cast<Word>(word ^ Word{1} << below(8 * sizeof(Word)));
      if (way == 1) word = static_cast<Word>(word + below(33) - 16);
      if (way == 2) word = static_cast<Word>(random_());
    }
  }
  template <typename Entry>
  Entry& one_of(std::vector<Entry>& entries) {
    return entries[below(entries.size())];
  }

  std::string change_byte(ModuleCopy& copy, size_t size) {
    const size_t at = below(size);
    change_word(copy.bytes[at]);
    return fmt::format("byte {:#x} of {:#x}", at, copy.code_size);
  }
  std::string change_size(ModuleCopy& copy) {
    const uint64_t which = below(4);
    if (which == 0) change_word(copy.address);
    if (which == 1) change_word(copy.code_size);
    if (which == 2) copy.bytes.resize(copy.bytes.size() + below(40) + 1);
    if (which == 3) copy.bytes.resize(below(copy.bytes.size()));
    return fmt::format("size {}", which);
  }
  std::string change_pc(ModuleCopy& copy) {
    CopiedPc& pc = one_of(copy.pcs);
    const uint64_t which = below(3);
    if (which == 0) change_word(pc.offset);
    if (which == 1) change_word(pc.original);
    if (which == 2) pc.kind = pc.kind == PcKind::RunsOn ? PcKind::Instruction : PcKind::RunsOn;
    return fmt::format("pc {:#x}: {}", pc.offset, which);
  }
  std::string change_function(ModuleCopy& copy) {
    CopiedFunction& one = one_of(copy.functions);
    const uint64_t which = below(3);
    if (which == 0) change_word(one.function);
    if (which == 1) change_word(one.original);
    if (which == 2) change_word(one.copy);
    return fmt::format("function: {}", which);
  }
  std::string change_table(ModuleCopy& copy) {
    if (copy.tables.empty()) return "";
    ClonedTable& one = one_of(copy.tables);
    const uint64_t which = below(4);
    if (which == 0) change_word(one.original);
    if (which == 1) change_word(one.copy);
    if (which == 2) change_word(one.entries);
    if (which == 3) {
      one.kind = one.kind == TableKind::Offsets ? TableKind::Addresses : TableKind::Offsets;
    }
    return fmt::format("table: {}", which);
  }
  std::string change_fixup(ModuleCopy& copy) {
    Fixup& one = one_of(copy.fixups);
    const uint64_t which = below(3);
    if (which == 0) change_word(one.offset);
    if (which == 1) {
      one.kind = static_cast<FixupKind>((static_cast<uint64_t>(one.kind) + 1 + below(2)) % 3);
    }
    if (which == 2) one.is_in_module = !one.is_in_module;
    return fmt::format("fix-up: {}", which);
  }

  template <typename Entry>
  bool reorder(std::vector<Entry>& entries) {
    if (entries.size() < 2) return false;
    const size_t at = below(entries.size());
    const auto place = entries.begin() + static_cast<ptrdiff_t>(at);
    const uint64_t way = below(3);
    if (way == 0) entries.insert(place, entries[below(entries.size())]);
    if (way == 1) entries.erase(place);
    if (way == 2) std::swap(*place, entries[(at + 1) % entries.size()]);
    return true;
  }
  std::string change_order(ModuleCopy& copy) {
    const uint64_t which = below(4);
    const bool is_other = which == 0   ? reorder(copy.pcs)
                          : which == 1 ? reorder(copy.functions)
                          : which == 2 ? reorder(copy.tables)
                                       : reorder(copy.fixups);
    return is_other ? fmt::format("order {}", which) : "";
  }

  std::mt19937 random_;
};

// Those that nothing was said of.
std::vector<std::string> passed(const Victim& victim, const Insertions& insertions, uint32_t seed,
                                unsigned count) {
  const auto is_right = [&](ModuleCopy copy) {
    return check(victim.facts(), victim.proof().proved, insertions, std::move(copy)).has_value();
  };
  const auto right = write_copy(victim.facts(), victim.proof().proved, insertions, victim.behind());
  EXPECT_TRUE(right && is_right(*right));
  Changes changes(seed);
  std::vector<std::string> found;
  for (unsigned i = 0; i < count; ++i) {
    ModuleCopy copy = *right;
    const std::string changed = changes.change(copy);
    if (!changed.empty() && is_right(std::move(copy))) found.push_back(changed);
  }
  return found;
}
std::vector<std::string> passed(const Victim& victim, uint32_t seed, unsigned count) {
  return passed(victim, {}, seed, count);
}

// The branches of a function that leave it lead to another one.
void shorten(const Victim& victim, std::string_view from, std::string_view to,
             Insertions& insertions) {
  const target::AddressRange range = victim.function(from).range();
  const code::ModuleCode& code = victim.facts().code;
  for (auto at = code.at(range.address); at && at->address < range.end(); at = code.at(at->end())) {
    const bool is_direct = at->flow == code::Flow::Call || at->flow == code::Flow::Jump ||
                           at->flow == code::Flow::Conditional;
    if (!is_direct || range.contains(code::branch_target(code, *at))) continue;
    insertions.shortcuts.emplace(at->address, victim.function(to).address);
  }
}

uint64_t target_in(const ModuleCopy& copy, uint64_t original) {
  const uint64_t address = CopyMap(copy).copy_of(original).value_or(0);
  const auto decoded = code::decode_full(std::span(copy.bytes).subspan(address - copy.address));
  return address + decoded->instruction.length + static_cast<uint64_t>(decoded->all[0].imm.value.s);
}

TEST(Check, RefusesEachChange) {
  constexpr unsigned kChanges = 2500;
  uint32_t seed = 1;
  for (const char* const file : {"switches", "layout", "reasons", "fixed"})
    EXPECT_EQ(passed(Victim(file), seed++, kChanges), std::vector<std::string>()) << file;
}

TEST(Check, RefusesEachChangeOfAnInstalledProgram) {
  EXPECT_EQ(passed(Victim("/bin/gzip"), 1, 200), std::vector<std::string>());
}

// As those past the stub of a PLT: of calls, and of jumps at the ends of functions.
TEST(Check, TakesAShortcutWhereItIsWantedAndNowhereElse) {
  const Victim victim("layout");
  Insertions shorter;
  shorten(victim, "ends_in_call", "run_reads", shorter);
  shorten(victim, "run_last", "run_reads", shorter);
  ASSERT_EQ(shorter.shortcuts.size(), 3U);
  const auto& proved = victim.proof().proved;
  const auto copy = write_copy(victim.facts(), proved, shorter, victim.behind());
  ASSERT_TRUE(copy);
  EXPECT_TRUE(check(victim.facts(), proved, shorter, *copy));
  for (const auto& [branch, target] : shorter.shortcuts) {
    EXPECT_EQ(target_in(*copy, branch), copy->function_copy(target));
    Insertions fewer = shorter;
    fewer.shortcuts.erase(branch);
    EXPECT_FALSE(check(victim.facts(), proved, fewer, *copy));
    Insertions others = shorter;
    others.shortcuts[branch] = victim.function("run_grows").address;
    EXPECT_FALSE(check(victim.facts(), proved, others, *copy));
  }
  EXPECT_FALSE(check(victim.facts(), proved, shorter, victim.write()));
  EXPECT_EQ(passed(victim, shorter, 1, 500), std::vector<std::string>());
}

// rel8 cannot be mended when the copy is moved.
TEST(Check, RefusesShortJumpsOutOfTheCopy) {
  const Victim victim("layout");
  const uint64_t start = victim.function("run_last").address;
  std::vector<Proved> proved;
  for (const Proved& one : victim.proof().proved) {
    if (victim.facts().code.functions()[one.function].address == start) proved.push_back(one);
  }
  ASSERT_EQ(proved.size(), 1U);
  const uint64_t end = victim.function("kept_last").range().end();
  const auto far = write_copy(victim.facts(), proved, {}, end + 0x1000);
  ASSERT_TRUE(far);
  EXPECT_TRUE(check(victim.facts(), proved, {}, *far));
  const auto near = write_copy(victim.facts(), proved, {}, end);
  ASSERT_TRUE(near);
  const auto checked = check(victim.facts(), proved, {}, *near);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::Refused);
}

// Else nobody could tell the one's addresses from the other's.
TEST(Check, RefusesACopyInItsModule) {
  const Victim victim("layout");
  const uint64_t start = victim.function("run_grows").address;
  const auto copy = write_copy(victim.facts(), victim.proof().proved, {}, start);
  ASSERT_TRUE(copy);
  EXPECT_FALSE(victim.check(*copy));
}

}  // namespace
}  // namespace clew::copy
