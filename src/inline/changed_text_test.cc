// SPDX-License-Identifier: Apache-2.0
// Text that is not its files': what is whose, and that what is ours goes, with the threads that
// stand there.
#include "inline/changed_text.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "inline/attachment.h"
#include "inline/victim.h"
#include "target/elf_file.h"

namespace clew::inline_ {
namespace {

using testing_::changed_text;
using testing_::install_counters;
using testing_::Module;
using testing_::module_of;
using testing_::plan_of;
using testing_::small_options;
using testing_::Victim;

using Bytes = std::vector<uint8_t>;

class Texts : public testing::Test {
 protected:
  Texts() : victim_(CLEW_COUNTER_VICTIM), module_(module_of(victim_.pid(), "counter_victim")) {}

  [[nodiscard]] Bytes read(uint64_t address, size_t size) const {
    Bytes bytes(size);
    EXPECT_TRUE(target::read_memory(victim_.pid(), address, bytes));
    return bytes;
  }
  // As somebody else who may trace it.
  void write(uint64_t address, const Bytes& bytes) const {
    const FileDescriptor memory(
        open(fmt::format("/proc/{}/mem", victim_.pid()).c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(pwrite(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(address)),
              static_cast<ssize_t>(bytes.size()));
  }
  static Bytes jump(uint64_t from, uint64_t to) {
    Bytes bytes = {0xe9, 0, 0, 0, 0};
    const auto distance = static_cast<uint32_t>(to - (from + bytes.size()));
    std::memcpy(&bytes[1], &distance, sizeof distance);
    return bytes;
  }
  [[nodiscard]] std::vector<TextChange> find() const {
    const auto maps = target::read_memory_map(victim_.pid());
    return ChangedText(victim_.pid()).find([&](uint64_t address) {
      return leads_nowhere(*maps, address);
    });
  }
  // A long nop between functions of a module, behind a `ret`: those behind a call are run.
  [[nodiscard]] uint64_t padding(const char* module = "libc.so.6") const {
    return place_of({0xc3, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, module) + 1;
  }
  [[nodiscard]] uint64_t place_of(const Bytes& wanted, const char* module = "libc.so.6") const {
    const auto maps = target::read_memory_map(victim_.pid());
    const auto map = std::find_if(maps->begin(), maps->end(), [&](const target::Mapping& one) {
      return one.executable && one.path.find(module) != std::string::npos;
    });
    const Bytes text = read(map->start, map->size_bytes());
    const auto at = std::search(text.begin(), text.end(), wanted.begin(), wanted.end());
    EXPECT_NE(at, text.end());
    return map->start + static_cast<uint64_t>(at - text.begin());
  }
  // Where nothing is, as near as an arena was.
  [[nodiscard]] uint64_t nowhere() const {
    const auto maps = target::read_memory_map(victim_.pid());
    uint64_t address = padding() & ~uint64_t{0xfffff};
    while (!leads_nowhere(*maps, address))
      address -= 1 << 20;
    return address;
  }
  [[nodiscard]] uint64_t work() const { return module_->load_bias + module_->address_of("work"); }

  // Of a session, in work().
  [[nodiscard]] uint64_t place_of_jump() const {
    const Bytes window = read(work(), 16);
    const auto opcode = std::find(window.begin(), window.end(), 0xe9);
    EXPECT_NE(opcode, window.end());
    return static_cast<uint64_t>(opcode - window.begin());
  }
  Attachment trace_work() {
    auto attachment = Attachment::open(victim_.pid(), small_options());
    EXPECT_TRUE(attachment) << attachment.error().message;
    const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "work"}}, *attachment);
    EXPECT_TRUE(install_counters(*attachment, *module_, plan));
    return std::move(*attachment);
  }

  Victim victim_;
  std::unique_ptr<Module> module_;
};

TEST_F(Texts, OfAProcessThatNobodyTouchedAreTheirFiles) {
  EXPECT_TRUE(find().empty());
  EXPECT_FALSE(look_at(victim_.pid()));
  const auto report = clean_up(victim_.pid(), false);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->left.empty() && report->strangers.empty());
}

TEST_F(Texts, AJumpThatLeadsNowhereIsFoundWithoutAnArenaAndTakenOut) {
  const uint64_t place = padding();
  write(place, jump(place, nowhere()));
  write(work(), {0xeb, 0x00});  // A short one that leads to none of ours.
  const std::vector<TextChange> changes = find();
  ASSERT_EQ(changes.size(), 2U);
  const auto found = std::find_if(changes.begin(), changes.end(),
                                  [&](const TextChange& one) { return one.address == place; });
  ASSERT_NE(found, changes.end());
  EXPECT_EQ(found->kind, ChangeKind::Jump);
  EXPECT_NE(found->path.find("libc.so.6"), std::string::npos);
  const auto info = look_at(victim_.pid());
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->residue);
  EXPECT_EQ(info->sites, 1U);
  const auto report = clean_up(victim_.pid(), false);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 1U);
  EXPECT_TRUE(report->left.empty());
  ASSERT_EQ(report->strangers.size(), 1U);
  EXPECT_EQ(report->strangers.front().address, work());
  EXPECT_FALSE(look_at(victim_.pid()));
}

TEST_F(Texts, AShortJumpGoesWithTheJumpThatItLeadsTo) {
  const uint64_t place = padding();
  write(place + 2, jump(place + 2, nowhere()));
  write(place, {0xeb, 0x00});
  const auto changes = find();
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].kind, ChangeKind::ShortJump);
  EXPECT_EQ(changes[1].kind, ChangeKind::Jump);
  const auto report = clean_up(victim_.pid(), false);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 2U);
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

// What is in front of these sections is no code.
TEST_F(Texts, AJumpWhereASectionBeginsIsFoundAndTakenOut) {
  const auto elf = target::ElfFile::open(CLEW_COUNTER_VICTIM);
  ASSERT_TRUE(elf) << elf.error().message;
  for (const char* const name : {".init", ".fini"}) {
    const target::ElfSection* const section = elf->find_section(name);
    ASSERT_NE(section, nullptr);
    const uint64_t begin = module_->load_bias + section->header.sh_addr;
    ASSERT_EQ(read(begin, 4), (Bytes{0x48, 0x83, 0xec, 0x08}));  // sub $8, %rsp
    for (const uint64_t place : {begin, begin + 4}) {
      write(place, jump(place, nowhere()));
      const auto changes = find();
      ASSERT_EQ(changes.size(), 1U) << name;
      EXPECT_EQ(changes[0].address, place);
      EXPECT_EQ(changes[0].kind, ChangeKind::Jump);
      const auto report = clean_up(victim_.pid(), false);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->repaired, 1U);
      EXPECT_TRUE(changed_text(victim_.pid()).empty());
    }
  }
}

// Its bytes may be in part those that were there before.
TEST_F(Texts, AJumpWhoseOpcodeIsTheFilesIsFound) {
  const uint64_t place = place_of({0x5b, 0xe9}) + 1;  // pop %rbx; jmp …
  write(place, jump(place, nowhere()));
  const auto changes = find();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].address, place);
  EXPECT_EQ(changes[0].kind, ChangeKind::Jump);
}

TEST_F(Texts, ATrapAndOtherCodeAreSomebodyElsesAndStay) {
  const Bytes before = read(work(), 1);
  write(work(), {0xcc});
  const uint64_t place = padding();
  write(place, {0xe8, 1, 2, 3, 4});
  const auto report = clean_up(victim_.pid(), true);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 0U);
  EXPECT_TRUE(report->left.empty());
  ASSERT_EQ(report->strangers.size(), 2U);
  for (const TextChange& change : report->strangers) {
    EXPECT_EQ(change.kind, change.address == work() ? ChangeKind::Trap : ChangeKind::Other);
  }
  EXPECT_EQ(read(work(), 1), Bytes{0xcc});
  write(work(), before);
}

// A session that comes later would map its arena where the jump leads. It writes to nobody's text
// for that.
TEST_F(Texts, WithJumpsThatAreLeftAreRefusedToTheNextSession) {
  const uint64_t place = padding();
  write(place, jump(place, nowhere()));
  const auto attachment = Attachment::open(victim_.pid(), small_options());
  ASSERT_FALSE(attachment);
  EXPECT_NE(attachment.error().message.find("clew detach"), std::string::npos);
  EXPECT_EQ(find().size(), 1U);
}

// Programs that write their own code have bytes that look like a jump of ours, and lead nowhere.
TEST_F(Texts, OfAProgramThatWritesItAreItsOwn) {
  const auto expect_own = [&](uint64_t address, const Bytes& bytes) {
    const Bytes before = read(address, bytes.size());
    write(address, bytes);
    EXPECT_FALSE(look_at(victim_.pid()));
    const auto report = clean_up(victim_.pid(), false);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->repaired, 0U);
    EXPECT_TRUE(report->left.empty());
    EXPECT_FALSE(report->strangers.empty());
    EXPECT_EQ(read(address, bytes.size()), bytes);
    write(address, before);
  };
  const uint64_t moved = place_of({0xb8, 0xff, 0xff, 0xff, 0xff, 0xc3});  // mov $-1, %eax; ret
  expect_own(moved, {0xb8, 0xe9, 0, 0, 0, 0xc3});
  expect_own(moved, {0xb8, 0xe9, 0, 0x20, 0x30, 0xc3});
  // As XRay patches its sleds: mov $id, %r10d; call.
  expect_own(padding("counter_victim"), {0x41, 0xba, 0xe9, 0, 0, 0, 0xe8, 1, 2, 3});
}

TEST_F(Texts, AJumpIntoTheArenaThatNoJournalKnowsGoesWithTheSession) {
  const uint64_t place = padding("counter_victim");
  Attachment attachment = trace_work();
  const uint64_t jump_of_session = work() + place_of_jump();
  int32_t distance = 0;
  std::memcpy(&distance, &read(jump_of_session + 1, sizeof distance)[0], sizeof distance);
  const uint64_t code = jump_of_session + 5 + static_cast<uint64_t>(int64_t{distance});
  write(place, jump(place, code));
  const auto report = attachment.detach();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->residue);
  EXPECT_EQ(report->repaired, 1U);
  EXPECT_TRUE(report->left.empty());
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

TEST_F(Texts, WhatSomebodyWroteOverAProbeIsNamedWhenTheSessionLeaves) {
  Attachment attachment = trace_work();
  const uint64_t place = work() + place_of_jump();
  write(place, {0xe8, 1, 2, 3, 4});
  const auto report = attachment.detach();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->foreign_patches, 1U);
  ASSERT_FALSE(report->left.empty());
  EXPECT_EQ(report->left.front().address, place);
  EXPECT_EQ(describe(report->left.front()).find("counter_victim+0x"), 0U);
}

// A uprobe that comes to a jump that is there: its trap stands over the jump's first byte, and the
// file's first byte behind it. When the jump's session left with others staying, the rest of the
// jump was once forgotten, padding with it, and no arena knew of it when the last one left.
TEST_F(Texts, ATrapOverAJumpDoesNotKeepItsOtherBytes) {
  Attachment first = trace_work();
  auto second = Attachment::open(victim_.pid(), small_options());
  ASSERT_TRUE(second) << second.error().message;
  const uint64_t place = work() + place_of_jump();
  write(place, {0xcc});
  const auto left = first.detach();
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_EQ(left->foreign_patches, 0U);
  const auto changes = find();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().kind, ChangeKind::Trap);
  write(place, changes.front().file);
  ASSERT_TRUE(second->detach());
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

// Opening it would wait for a writer. The file itself is still there, behind the mapping.
TEST(TextsOfAFile, ThatIsAFifoByNowAreComparedWithTheMappedOne) {
  const std::string path = testing::TempDir() + "texts_victim_" + std::to_string(getpid());
  ASSERT_TRUE(std::filesystem::copy_file(CLEW_COUNTER_VICTIM, path));
  const Victim victim(path);
  const auto maps = target::read_memory_map(victim.pid());
  const auto map = std::find_if(maps->begin(), maps->end(), [&](const target::Mapping& one) {
    return one.executable && one.path == path;
  });
  ASSERT_NE(map, maps->end());
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const FileDescriptor memory(
      open(fmt::format("/proc/{}/mem", victim.pid()).c_str(), O_RDWR | O_CLOEXEC));
  const uint8_t trap = 0xcc;
  ASSERT_EQ(pwrite(memory.get(), &trap, 1, static_cast<off_t>(map->start + 16)), 1);
  const auto changes = ChangedText(victim.pid()).find([](uint64_t) { return false; });
  EXPECT_EQ(changes.size(), geteuid() == 0 ? 1U : 0U);
  ASSERT_EQ(unlink(path.c_str()), 0);
}

// --- threads that stand there --------------------------------------------------------------------

// Of a process that is stopped by SIGSTOP, and stays so.
class FirstThread {
 public:
  explicit FirstThread(pid_t pid) : pid_(pid) {
    EXPECT_EQ(kill(pid, SIGSTOP), 0);
    siginfo_t info = {};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED), 0);
  }
  // Where it goes on.
  [[nodiscard]] uint64_t place() const {
    return with_registers([](user_regs_struct&) {});
  }
  void stand_at(uint64_t address) const {
    with_registers([&](user_regs_struct& registers) {
      registers.rip = address;
      registers.orig_rax = UINT64_MAX;
    });
  }

 private:
  template <typename Change>
  uint64_t with_registers(const Change& change) const {
    EXPECT_EQ(ptrace(PTRACE_SEIZE, pid_, nullptr, nullptr), 0);
    EXPECT_EQ(ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr), 0);
    EXPECT_EQ(waitpid(pid_, nullptr, __WALL), pid_);
    user_regs_struct registers = {};
    EXPECT_EQ(ptrace(PTRACE_GETREGS, pid_, nullptr, &registers), 0);
    change(registers);
    EXPECT_EQ(ptrace(PTRACE_SETREGS, pid_, nullptr, &registers), 0);
    EXPECT_EQ(ptrace(PTRACE_DETACH, pid_, nullptr, nullptr), 0);
    return registers.rip;
  }
  pid_t pid_;
};

TEST_F(Texts, AThreadBeforeAStrayShortJumpsJumpGoesOnWhereItCameFrom) {
  const uint64_t place = padding();
  write(place + 2, jump(place + 2, nowhere()));
  write(place, {0xeb, 0x00});
  const FirstThread thread(victim_.pid());
  thread.stand_at(place + 2);
  const auto report = clean_up(victim_.pid(), false);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 2U);
  EXPECT_EQ(thread.place(), place);
}

TEST_F(Texts, AJumpWithAThreadInTheMiddleStaysAndIsNamed) {
  const uint64_t place = padding();
  write(place, jump(place, nowhere()));
  const FirstThread thread(victim_.pid());
  thread.stand_at(place + 1);
  const auto report = clean_up(victim_.pid(), false);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 0U);
  ASSERT_EQ(report->left.size(), 1U);
  EXPECT_EQ(report->left.front().address, place);
  EXPECT_FALSE(Attachment::open(victim_.pid(), small_options()));
}

// The first function of the module that has only a short window.
std::optional<code::Plan> short_plan(const Module& module) {
  for (const target::Function& function : module.image.functions()) {
    for (const code::RequestKind kind : {code::RequestKind::Entry, code::RequestKind::Exits}) {
      const code::Request request = {.kind = kind, .address = function.address};
      code::Plan plan = plan_windows(module.code, {&request, 1}, {});
      const bool is_short =
          plan.windows.size() == 1 && plan.windows[0].window_class == code::WindowClass::ShortJump;
      if (is_short) return plan;
    }
  }
  return std::nullopt;
}

// The padding that a short window's jump leads over would lead into the next function.
TEST_F(Texts, AThreadInPaddingGoesOnAtItsWindowWhenTheSessionLeaves) {
  const auto library = module_of(victim_.pid(), "ld-linux-x86-64.so.2");
  const std::optional<code::Plan> plan = short_plan(*library);
  ASSERT_TRUE(plan) << "no function has a short window";
  const code::Window& window = plan->windows[0];
  auto attachment = Attachment::open(victim_.pid(), small_options());
  ASSERT_TRUE(attachment) << attachment.error().message;
  const auto installed = install_counters(*attachment, *library, *plan);
  ASSERT_TRUE(installed) << installed.error().message;
  ASSERT_EQ(installed->windows, 1U);
  const FirstThread thread(victim_.pid());
  thread.stand_at(library->load_bias + window.hop_address);
  const auto report = attachment->detach();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->residue) << report->residue_reason;
  EXPECT_EQ(thread.place(), library->load_bias + window.address);
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

}  // namespace
}  // namespace clew::inline_
