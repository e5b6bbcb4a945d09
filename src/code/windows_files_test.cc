// SPDX-License-Identifier: Apache-2.0
// All windows of installed files, against an oracle.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "code/image_text.h"
#include "code/later_uprobe.h"
#include "code/window_checks.h"
#include "code/windows.h"

namespace clew::code {
namespace {

// All entries and exits of a file.
std::vector<Request> all_requests(const target::ModuleImage& image) {
  std::vector<Request> requests;
  for (const target::Function& function : image.functions()) {
    requests.push_back({RequestKind::Entry, function.address});
    requests.push_back({RequestKind::Exits, function.address});
  }
  return requests;
}

// Branches as Zydis alone finds them, function by function: an oracle that shares no code with the
// sweep but the list of functions.
std::string branch_into_window(const target::ModuleImage& image, const ModuleText& text,
                               const Plan& plan) {
  std::map<uint64_t, const Window*> windows;
  for (const Window& window : plan.windows)
    windows[window.address] = &window;
  for (const target::Function& function : image.functions()) {
    for (const Section& section : text.sections) {
      if (!section.executable || function.address - section.address >= section.bytes.size())
        continue;
      auto rest = section.bytes.subspan(function.address - section.address);
      rest = rest.first(std::min<size_t>(rest.size(), function.size_bytes));
      for (uint64_t address = function.address; !rest.empty();) {
        const auto decoded = decode_with_zydis(rest);
        if (!decoded) break;
        const uint64_t next = address + decoded->length;
        const bool branches = decoded->flow == Flow::Jump || decoded->flow == Flow::Conditional;
        const uint64_t target =
            branches ? next + static_cast<uint64_t>(signed_field(rest, decoded->immediate_offset,
                                                                 decoded->immediate_size))
                     : 0;
        const auto after = windows.upper_bound(target);
        if (after != windows.begin()) {
          const Window& window = *std::prev(after)->second;
          const uint64_t end = window.address + window.size_bytes;
          if (target > window.address && target < end) return std::string(function.name);
        }
        address = next;
        rest = rest.subspan(decoded->length);
      }
    }
  }
  return "";
}

// What is asked for at all functions of a file, from the least on: nothing (counts, times), the
// first argument, all of the state; and, at their exits, nothing.
constexpr size_t kKinds = 4;
std::array<std::pair<RequestKind, ProbeReads>, kKinds> usual_probes() {
  ProbeReads first;
  first.registers.add(abi::Register::Rdi);
  return {{{RequestKind::Entry, kReadsNothing},
           {RequestKind::Entry, first},
           {RequestKind::Entry, kReadsEverything},
           {RequestKind::Exits, kReadsNothing}}};
}

struct FileGoal {
  const char* path;
  double refused_exits_max;  // A share of the functions.
  // By usual_probes(): of all places that can take a jump, the per mille that get none for the sake
  // of uprobes that come later. As root they have a uprobe of our own, else they are refused.
  // Measured, and rounded up: what is above has become worse.
  std::array<double, kKinds> later_uprobe_max;
};

class InstalledFile : public testing::TestWithParam<FileGoal> {};

TEST_P(InstalledFile, TakesNearlyAllEntriesAndExitsAndKeepsEveryInvariant) {
  const auto image = target::ModuleImage::read(GetParam().path);
  ASSERT_TRUE(image) << image.error().message;
  const auto text = text_of(*image);
  ASSERT_TRUE(text);
  const ModuleCode code = analyse(*text);
  const std::vector<Request> requests = all_requests(*image);
  const Plan plan = plan_windows(code, requests);
  EXPECT_EQ(broken_plan(code, plan), "");
  EXPECT_EQ(branch_into_window(*image, *text, plan), "");
  size_t parts = 0;
  size_t shared = 0;
  std::array<size_t, 2> refused{};  // Entries, exits.
  for (const Refusal& refusal : plan.refusals) {
    const bool is_exits = requests[refusal.request].kind == RequestKind::Exits;
    if (refusal.reason == RefusalReason::ColdPart) {
      parts += is_exits ? 1 : 0;
    } else if (refusal.reason == RefusalReason::SharedTail) {
      ++shared;  // There are no exits of its own to take.
    } else {
      ++refused[is_exits ? 1 : 0];
    }
  }
  const double functions = static_cast<double>(image->functions().size() - parts);
  EXPECT_LE(static_cast<double>(refused[0]), 0.01 * functions);
  EXPECT_LE(static_cast<double>(shared), 0.01 * functions);
  EXPECT_LE(static_cast<double>(refused[1]), GetParam().refused_exits_max * functions);
}

// Whoever comes later with a uprobe, at whatever entry, finds no jump there that could end the
// process.
TEST_P(InstalledFile, HasNoEntryThatALaterUprobeMakesDeadly) {
  const auto image = target::ModuleImage::read(GetParam().path);
  ASSERT_TRUE(image) << image.error().message;
  const auto text = text_of(*image);
  ASSERT_TRUE(text);
  const ModuleCode code = analyse(*text);
  for (const ProbeReads& reads : {kReadsNothing, kReadsEverything}) {
    std::vector<Request> requests = all_requests(*image);
    for (Request& request : requests)
      request.reads = reads;
    const Plan plan = plan_windows(code, requests, {}, LateUprobeDanger::Refused);
    EXPECT_EQ(broken_plan(code, plan), "");
    EXPECT_EQ(branch_into_window(*image, *text, plan), "");
    for (const target::Function& function : image->functions()) {
      ASSERT_NE(later_uprobe(code, plan.windows, function.address), LaterUprobe::Dangerous)
          << function.name;
    }
  }
}

// The same functions answer by jumps, but for few. What is asked for decides: a first instruction
// that changes nothing of it stays in its place, and the jump lies behind it; over one that does,
// bytes may stand that serve both ways. Over 23 programs and 8 libraries it is 0.44 % of the
// entries for counts and 1.23 % for the first argument (docs/decisions/kept-instructions.md); libc,
// with its system calls of two instructions, is the one that has most.
TEST_P(InstalledFile, LeavesFewPlacesToUprobes) {
  const auto image = target::ModuleImage::read(GetParam().path);
  ASSERT_TRUE(image) << image.error().message;
  const auto text = text_of(*image);
  ASSERT_TRUE(text);
  const ModuleCode code = analyse(*text);
  const auto probes = usual_probes();
  for (size_t kind = 0; kind < kKinds; ++kind) {
    std::vector<Request> requests;
    for (const target::Function& function : image->functions())
      requests.push_back({probes[kind].first, function.address, probes[kind].second});
    const auto refused = [&](LateUprobeDanger danger) {
      return plan_windows(code, requests, {}, danger).refusals.size();
    };
    const size_t unfit = refused(LateUprobeDanger::Allowed);
    const size_t left = refused(LateUprobeDanger::Refused) - unfit;
    const double share =
        1000.0 * static_cast<double>(left) / static_cast<double>(requests.size() - unfit);
    EXPECT_LE(share, GetParam().later_uprobe_max[kind]) << kind << ": " << left;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Windows, InstalledFile,
    testing::Values(FileGoal{"/usr/bin/redis-server", 0.005, {2, 9, 56, 2}},
                    FileGoal{"/lib/x86_64-linux-gnu/libc.so.6", 0.005, {48, 59, 113, 0}},
                    FileGoal{"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 0.005, {1, 1, 2, 0}},
                    FileGoal{"/usr/sbin/nginx", 0.005, {2, 2, 19, 0}},
                    FileGoal{"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", 0.005, {3, 5, 34, 3}},
                    FileGoal{"/usr/bin/lua5.4", 0.01, {9, 9, 41, 3}}));

}  // namespace
}  // namespace clew::code
