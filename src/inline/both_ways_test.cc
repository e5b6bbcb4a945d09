// SPDX-License-Identifier: Apache-2.0
// Sessions whose bytes at a function's first instruction serve both ways (code/both_ways.h), and
// what uprobes of others leave there.
#include "code/both_ways.h"

#include <algorithm>
#include <array>
#include <map>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "abi/region.h"
#include "inline/arena.h"
#include "inline/attachment.h"
#include "inline/changed_text.h"
#include "inline/site_journal.h"
#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::cell;
using testing_::changed_text;
using testing_::Footprint;
using testing_::footprint_of;
using testing_::header_word;
using testing_::install_counters;
using testing_::Module;
using testing_::module_of;
using testing_::small_options;
using testing_::Victim;

constexpr std::array<const char*, 5> kNames = {"two_bytes", "three_bytes", "four_bytes",
                                               "with_padding", "sign_extended"};
constexpr uint8_t kTrap = 0xcc;

// A session and what it has set.
struct Session {
  Attachment attachment;
  code::Plan plan;

  // Of each function; all have as many.
  [[nodiscard]] uint64_t counted(code::PointKind kind) const {
    std::map<uint32_t, uint64_t> by_request;
    for (uint32_t i = 0; i < plan.points.size(); ++i) {
      if (plan.points[i].kind == kind) by_request[plan.points[i].request] += cell(attachment, i);
    }
    EXPECT_EQ(by_request.size(), kNames.size());
    for (const auto& [request, count] : by_request)
      EXPECT_EQ(count, by_request.begin()->second) << kNames.at(request / 2);
    return by_request.begin()->second;
  }
  [[nodiscard]] uint64_t entries() const { return counted(code::PointKind::Entry); }
  [[nodiscard]] uint64_t exits() const { return counted(code::PointKind::Exit); }
  [[nodiscard]] uint64_t lost() const {
    return header_word(attachment, offsetof(abi::RegionHeader, missed_unreadable));
  }
};

class BothWays : public testing::Test {
 protected:
  BothWays() : victim_(CLEW_BOTH_WAYS_VICTIM), module_(module_of(victim_.pid(), "both_ways")) {}

  static code::ProbeReads reads_of_first() {
    code::ProbeReads reads;
    reads.registers.add(abi::Register::Rdi);
    return reads;
  }

  Session open(const code::ProbeReads& reads = reads_of_first()) {
    auto attachment = Attachment::open(victim_.pid(), small_options());
    EXPECT_TRUE(attachment) << attachment.error().message;
    std::vector<code::Request> requests;
    for (const char* name : kNames) {
      requests.push_back({code::RequestKind::Entry, module_->address_of(name), reads});
      requests.push_back({code::RequestKind::Exits, module_->address_of(name)});
    }
    code::Plan plan =
        plan_windows(module_->code, requests, attachment->installed(module_->load_bias),
                     code::LateUprobeDanger::Refused);
    EXPECT_TRUE(plan.refusals.empty());
    const auto report = install_counters(*attachment, *module_, plan);
    EXPECT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->refusals.empty());
    return {std::move(*attachment), std::move(plan)};
  }

  void leave(Session& session, bool is_last = true) {
    const auto report = session.attachment.detach();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_FALSE(report->residue) << report->residue_reason;
    EXPECT_EQ(report->foreign_patches, 0U);
    if (!is_last) return;
    EXPECT_TRUE(changed_text(victim_.pid()).empty());
  }

  [[nodiscard]] uint64_t address_of(const char* name) const {
    return module_->address_of(name) + module_->load_bias;
  }

  void write(uint64_t address, std::span<const uint8_t> bytes) const {
    const FileDescriptor memory(
        ::open(fmt::format("/proc/{}/mem", victim_.pid()).c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(pwrite(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(address)),
              static_cast<ssize_t>(bytes.size()));
  }

  // As the kernel leaves them when a uprobe has gone.
  void put_back_first_bytes() const {
    for (const char* name : kNames)
      write(address_of(name), module_->code.text_from(module_->address_of(name)).first(1));
  }

  void run(long rounds) {
    calls_ += rounds;
    ASSERT_EQ(victim_.ask(fmt::format("run {}", rounds)), std::to_string(calls_));
  }

  // Lets one round run until it is at the first function's entry and `steps` instructions further.
  void stop_at(unsigned steps) {
    const pid_t pid = victim_.pid();
    int status = 0;
    ASSERT_EQ(ptrace(PTRACE_ATTACH, pid, nullptr, nullptr), 0);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    victim_.send("run 1");
    user_regs_struct registers = {};
    for (unsigned left = steps + 1; left != 0;) {
      ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, pid, nullptr, nullptr), 0);
      ASSERT_EQ(waitpid(pid, &status, 0), pid);
      ptrace(PTRACE_GETREGS, pid, nullptr, &registers);
      if (registers.rip == address_of(kNames[0]) || left <= steps) --left;
    }
    ptrace(PTRACE_DETACH, pid, nullptr, reinterpret_cast<void*>(intptr_t{SIGSTOP}));
  }

  // The one thread, which is stopped, with the carry flag like this.
  void put_thread(uint64_t address, bool carry) {
    const pid_t pid = victim_.pid();
    int status = 0;
    ASSERT_EQ(ptrace(PTRACE_ATTACH, pid, nullptr, nullptr), 0);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    user_regs_struct registers = {};
    ptrace(PTRACE_GETREGS, pid, nullptr, &registers);
    registers.rip = address;
    registers.eflags = (registers.eflags & ~uint64_t{1}) | (carry ? 1 : 0);
    ptrace(PTRACE_SETREGS, pid, nullptr, &registers);
    ptrace(PTRACE_DETACH, pid, nullptr, reinterpret_cast<void*>(intptr_t{SIGSTOP}));
  }

  void go_on(const std::string& when) {
    kill(victim_.pid(), SIGCONT);
    ++calls_;
    ASSERT_EQ(victim_.read_line(), std::to_string(calls_)) << when;
  }

  Victim victim_;
  std::unique_ptr<Module> module_;
  long calls_ = 0;
};

TEST_F(BothWays, CountEachCallAndLeaveNothing) {
  const Footprint before = footprint_of(victim_.pid());
  Session session = open();
  for (const code::Window& window : session.plan.windows)
    EXPECT_EQ(window.window_class, code::WindowClass::BothWays);
  run(1000);
  EXPECT_EQ(session.entries(), 1000U);
  EXPECT_EQ(session.exits(), 1000U);
  EXPECT_EQ(session.lost(), 0U);
  leave(session);
  EXPECT_EQ(footprint_of(victim_.pid()), before);
  run(10);
  EXPECT_EQ(victim_.finish(), 0);
}

TEST_F(BothWays, LoseAndCountTheHitsOfThoseWhoComeFromBehindTheFirstInstruction) {
  Session session = open();
  run(10);
  put_back_first_bytes();
  run(100);
  EXPECT_EQ(session.entries(), 10U);
  EXPECT_EQ(session.exits(), 110U);
  EXPECT_EQ(session.lost(), 100 * kNames.size());
  leave(session);
  run(10);
}

// Which also writes its bytes anew.
TEST_F(BothWays, AreSharedByTwoSessionsWhicheverLeavesFirst) {
  for (const bool first_leaves : {true, false}) {
    Session first = open();
    put_back_first_bytes();
    Session second = open();
    run(100);
    put_back_first_bytes();
    run(10);
    for (const Session* one : {&first, &second}) {
      EXPECT_EQ(one->entries(), 100U);
      EXPECT_EQ(one->exits(), 110U);
      EXPECT_EQ(one->lost(), 10 * kNames.size());
    }
    Session& leaving = first_leaves ? first : second;
    Session& staying = first_leaves ? second : first;
    leave(leaving, false);
    run(1000);
    EXPECT_EQ(leaving.entries(), 100U);
    EXPECT_EQ(staying.entries(), 1100U);
    put_back_first_bytes();
    run(1);
    EXPECT_EQ(staying.entries(), 1100U);
    EXPECT_EQ(staying.exits(), 1111U);
    EXPECT_EQ(staying.lost(), 11 * kNames.size());
    leave(staying);
  }
}

// It asks for nothing that the first instruction changes.
TEST_F(BothWays, LoseNoHitOfASessionThatCounts) {
  for (const bool counter_leaves : {true, false}) {
    Session values = open();
    Session counts = open(code::kReadsNothing);
    run(100);
    put_back_first_bytes();
    run(10);
    EXPECT_EQ(values.entries(), 100U);
    EXPECT_EQ(values.lost(), 10 * kNames.size());
    EXPECT_EQ(counts.entries(), 110U);
    EXPECT_EQ(counts.lost(), 0U);
    leave(counter_leaves ? counts : values, false);
    run(1);
    leave(counter_leaves ? values : counts);
  }
}

TEST_F(BothWays, LeaveATrapToWhoHasSetIt) {
  Session session = open();
  write(address_of("four_bytes"), {&kTrap, 1});
  const auto report = session.attachment.detach();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->residue);
  EXPECT_EQ(report->foreign_patches, 0U);
  EXPECT_THAT(changed_text(victim_.pid()), testing::ElementsAre(address_of("four_bytes")));
  put_back_first_bytes();
  run(10);
}

// A second session may come while it is there.
TEST_F(BothWays, ShareATrapWithTheNextSession) {
  Session first = open();
  write(address_of("four_bytes"), {&kTrap, 1});
  Session second = open();
  leave(first, false);
  const auto report = second.attachment.detach();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->foreign_patches, 0U);
  EXPECT_THAT(changed_text(victim_.pid()), testing::ElementsAre(address_of("four_bytes")));
}

TEST_F(BothWays, AreNotWrittenBehindATrapThatIsThere) {
  write(address_of("four_bytes"), {&kTrap, 1});
  auto attachment = Attachment::open(victim_.pid(), small_options());
  ASSERT_TRUE(attachment);
  const code::Request request = {code::RequestKind::Entry, module_->address_of("four_bytes"),
                                 reads_of_first()};
  const code::Plan plan =
      plan_windows(module_->code, {&request, 1}, {}, code::LateUprobeDanger::Refused);
  const auto report = install_counters(*attachment, *module_, plan);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->refusals.size(), 1U);
  EXPECT_EQ(report->refusals[0].reason, code::RefusalReason::ForeignPatch);
  ASSERT_TRUE(attachment->detach());
  put_back_first_bytes();
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

// Wherever the thread is when a session comes or goes, and which way it has come: at each
// instruction of the first function, and at some of the others.
TEST_F(BothWays, ComeAndGoAtEveryInstruction) {
  constexpr unsigned kSteps = 150;
  constexpr unsigned kOfFirst = 32;
  constexpr unsigned kStride = 7;
  for (const bool from_behind : {false, true}) {
    for (unsigned step = 0; step < kSteps; step += step < kOfFirst ? 1 : kStride) {
      ASSERT_NO_FATAL_FAILURE(stop_at(step));
      Session session = open();
      ASSERT_NO_FATAL_FAILURE(go_on(fmt::format("installed at step {}", step)));
      if (from_behind) put_back_first_bytes();
      ASSERT_NO_FATAL_FAILURE(run(1));
      ASSERT_NO_FATAL_FAILURE(stop_at(step));
      ASSERT_NO_FATAL_FAILURE(leave(session));
      ASSERT_NO_FATAL_FAILURE(go_on(fmt::format("removed at step {}", step)));
    }
  }
  EXPECT_EQ(victim_.finish(), 0);
}

// Of a tracer whose arena and journal are gone.
TEST_F(BothWays, AreFoundAndTakenBackWithoutAJournal) {
  constexpr size_t kSize = code::kBothWaysSizeBytes;
  for (const char* name : kNames) {
    const uint64_t address = address_of(name);
    std::array<uint8_t, kSize> ours{};
    Session session = open();
    ASSERT_TRUE(target::read_memory(victim_.pid(), address, ours));
    leave(session);
    const auto file = module_->code.text_from(module_->address_of(name));
    for (const uint8_t first : {ours[0], file[0], kTrap}) {
      ours[0] = first;
      write(address, ours);
      const auto info = look_at(victim_.pid());
      ASSERT_TRUE(info) << name;
      EXPECT_EQ(info->sites, 1U);
      const auto report = clean_up(victim_.pid(), false);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->repaired, 1U) << name;
      EXPECT_TRUE(report->left.empty());
      const std::vector<uint64_t> trap = {address};
      EXPECT_EQ(changed_text(victim_.pid()), first == kTrap ? trap : std::vector<uint64_t>());
      write(address, file.first(1));
    }
  }
  run(10);
}

// A tracer that is killed between its record and its bytes leaves a layer that nobody has jumped
// to.
TEST_F(BothWays, EndAlsoWhereTheLastSessionHasWrittenNothing) {
  using Bytes = std::array<uint8_t, code::kBothWaysSizeBytes>;
  constexpr unsigned kSteps = 5;
  for (const bool from_behind : {false, true}) {
    for (unsigned step = 0; step < kSteps; ++step) {
      const Session first = open();
      std::map<std::string, Bytes> written;
      for (const std::string name : kNames)
        ASSERT_TRUE(target::read_memory(victim_.pid(), address_of(name.c_str()), written[name]));
      const Session second = open();
      for (const auto& [name, bytes] : written)
        write(address_of(name.c_str()), bytes);
      if (from_behind) put_back_first_bytes();
      ASSERT_NO_FATAL_FAILURE(stop_at(step));
      const auto report = clean_up(victim_.pid(), true);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_TRUE(report->left.empty());
      EXPECT_TRUE(changed_text(victim_.pid()).empty());
      ASSERT_NO_FATAL_FAILURE(go_on(fmt::format("removed at step {}", step)));
    }
  }
  EXPECT_EQ(victim_.finish(), 0);
}

// The flags say how, where neither arena nor journal does.
TEST_F(BothWays, LetAThreadInFrontOfALostJumpGoOn) {
  const uint64_t address = address_of(kNames[0]);
  std::array<uint8_t, code::kBothWaysSizeBytes> ours{};
  Session session = open();
  ASSERT_TRUE(target::read_memory(victim_.pid(), address, ours));
  leave(session);
  for (const bool has_done_first : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(stop_at(has_done_first ? 1 : 0));
    write(address, ours);
    ASSERT_NO_FATAL_FAILURE(put_thread(address + code::kMarkSizeBytes, has_done_first));
    const auto report = clean_up(victim_.pid(), false);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->repaired, 1U);
    EXPECT_TRUE(report->left.empty());
    ASSERT_NO_FATAL_FAILURE(go_on(has_done_first ? "behind the first" : "in front of it"));
  }
  EXPECT_EQ(victim_.finish(), 0);
}

// A file that is mapped anew has the traps of uprobes, and none of our bytes.
TEST_F(BothWays, OfAFileThatCameBackAreMissedUnderATrap) {
  Session session = open();
  EXPECT_THAT(session.attachment.reloaded(), testing::IsEmpty());
  for (const char* name : kNames) {
    const auto file = module_->code.text_from(module_->address_of(name));
    write(address_of(name), file.first(code::kBothWaysSizeBytes));
    write(address_of(name), {&kTrap, 1});
  }
  EXPECT_THAT(session.attachment.reloaded(), testing::ElementsAre(module_->load_bias));
  put_back_first_bytes();
  leave(session);
}

// The program can write its journal.
TEST_F(BothWays, OfARecordThatWasMadeUpAreNone) {
  Session session = open();
  const auto maps = target::read_memory_map(victim_.pid());
  ASSERT_TRUE(maps);
  const auto mapping = find_arena(*maps);
  ASSERT_TRUE(mapping);
  const auto arena = Arena::join(victim_.pid(), *mapping);
  ASSERT_TRUE(arena) << arena.error().message;
  const auto sites = arena->sites();
  const auto used = std::find_if(sites.begin(), sites.end(), [](const abi::SiteRecord& one) {
    return one.state != abi::SiteState::Free;
  });
  ASSERT_NE(used, sites.end());
  const abi::SiteRecord right = *used;
  EXPECT_TRUE(SiteJournal(*arena).find(right.address));
  abi::DisplacedRecord* const parts = used->instructions;
  parts[1].length = static_cast<uint8_t>(parts[1].length + parts[0].length - 1);
  parts[0].length = parts[1].offset = 1;
  EXPECT_FALSE(SiteJournal(*arena).find(right.address)) << "a first instruction of one byte";
  *used = right;
  parts[1].form = static_cast<uint8_t>(code::Form::IndirectCall);
  EXPECT_FALSE(SiteJournal(*arena).find(right.address)) << "a call without its byte";
  *used = right;
  leave(session);
}

}  // namespace
}  // namespace clew::inline_
