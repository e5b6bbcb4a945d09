// SPDX-License-Identifier: Apache-2.0
// Sessions at the exits of a live victim that have no room of their own: at branches to a ret,
// behind an instruction before one, behind the end of a function that runs on into the next.
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "code/victims/exit_shapes.h"
#include "inline/attachment.h"
#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::cell;
using testing_::changed_text;
using testing_::Footprint;
using testing_::footprint_of;
using testing_::install_counters;
using testing_::Module;
using testing_::module_of;
using testing_::small_options;
using testing_::Victim;

const char* const kShapesVictim = CLEW_SHAPES_VICTIM;

#define CLEW_NAME_SHAPE(name) #name,
constexpr const char* kShapeNames[] = {CLEW_EXIT_SHAPES(CLEW_NAME_SHAPE)};
#undef CLEW_NAME_SHAPE

using Numbers = std::map<std::string, uint64_t>;  // By the name of a shape.

// "early 3 loop 3 …"
Numbers numbers_of(const std::string& line) {
  Numbers numbers;
  std::istringstream words(line);
  std::string name;
  uint64_t value = 0;
  while (words >> name >> value)
    numbers[name] = value;
  return numbers;
}

class ExitSessions : public testing::Test {
 protected:
  ExitSessions() : victim_(kShapesVictim), module_(module_of(victim_.pid(), "shapes_victim")) {}

  // Entries and exits of all shapes.
  code::Plan plan(const Attachment& attachment) {
    std::vector<code::Request> requests;
    for (const char* name : kShapeNames) {
      const uint64_t address = module_->address_of(std::string("shape_") + name);
      requests.push_back({code::RequestKind::Entry, address});
      requests.push_back({code::RequestKind::Exits, address});
    }
    return plan_windows(module_->code, requests, attachment.installed(module_->load_bias));
  }

  Attachment open() {
    auto attachment = Attachment::open(victim_.pid(), small_options());
    EXPECT_TRUE(attachment.has_value()) << attachment.error().message;
    return std::move(*attachment);
  }

  code::Plan install(Attachment& attachment) {
    code::Plan made = plan(attachment);
    EXPECT_TRUE(made.refusals.empty());
    const auto report = install_counters(attachment, *module_, made);
    EXPECT_TRUE(report.has_value()) << report.error().message;
    EXPECT_TRUE(report->refusals.empty());
    return made;
  }

  void leave(Attachment& attachment) {
    const auto report = attachment.detach();
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_FALSE(report->residue) << report->residue_reason;
    EXPECT_EQ(report->foreign_patches, 0U);
    EXPECT_TRUE(changed_text(victim_.pid()).empty());
  }

  static Numbers counted(const Attachment& attachment, const code::Plan& made,
                         code::PointKind kind) {
    Numbers numbers;
    for (uint32_t i = 0; i < made.points.size(); ++i) {
      if (made.points[i].kind == kind) {
        numbers[kShapeNames[made.points[i].request / 2]] += cell(attachment, i);
      }
    }
    return numbers;
  }

  // Until it waits for the next command.
  void wait_for_sleep() {
    std::string name;
    char state = 0;
    while (state != 'S') {
      std::ifstream stat("/proc/" + std::to_string(victim_.pid()) + "/stat");
      stat >> name >> name >> state;
    }
  }

  static bool is_pushf(pid_t pid, uint64_t pc) {
    constexpr long kPushf = 0x9c;
    return (ptrace(PTRACE_PEEKTEXT, pid, reinterpret_cast<void*>(pc), nullptr) & 0xff) == kPushf;
  }

  // A step over pushf stores the flag that makes it a step, and of a step over popf Linux believes
  // that the program itself set it (6.18, enable_single_step()): either would end the program when
  // nobody steps any more.
  static constexpr long kTrapFlag = 0x100;

  static void clear_trap_flag(pid_t pid, uint64_t rsp) {
    auto* const at = reinterpret_cast<void*>(rsp);
    const long flags = ptrace(PTRACE_PEEKDATA, pid, at, nullptr);
    ASSERT_EQ(ptrace(PTRACE_POKEDATA, pid, at, flags & ~kTrapFlag), 0);
  }

  // Lets the main thread run the command until it is in a shape or a copy of one, and `steps`
  // instructions further; then it stays stopped.
  void stop_in_shapes(const std::string& command, unsigned steps) {
    const uint64_t begin = module_->address_of("shape_early") + module_->load_bias;
    const pid_t pid = victim_.pid();
    int status = 0;
    ASSERT_EQ(ptrace(PTRACE_ATTACH, pid, nullptr, nullptr), 0);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    victim_.send(command);
    user_regs_struct registers = {};
    for (unsigned left = steps + 1; left != 0;) {
      const bool pushes_flags = is_pushf(pid, registers.rip);
      ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, pid, nullptr, nullptr), 0);
      ASSERT_EQ(waitpid(pid, &status, 0), pid);
      ptrace(PTRACE_GETREGS, pid, nullptr, &registers);
      if (pushes_flags) clear_trap_flag(pid, registers.rsp);
      if (registers.rip == begin || left <= steps) --left;
    }
    registers.eflags &= ~static_cast<unsigned long long>(kTrapFlag);
    ASSERT_EQ(ptrace(PTRACE_SETREGS, pid, nullptr, &registers), 0);
    ptrace(PTRACE_DETACH, pid, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(SIGSTOP)));
  }

  Victim victim_;
  std::unique_ptr<Module> module_;
};

TEST_F(ExitSessions, CountAnExitForEachCall) {
  const Footprint before = footprint_of(victim_.pid());
  Attachment attachment = open();
  const code::Plan made = install(attachment);
  const Numbers truth = numbers_of(victim_.ask("shapes 10000"));
  EXPECT_EQ(truth.size(), std::size(kShapeNames));
  EXPECT_EQ(counted(attachment, made, code::PointKind::Entry), truth);
  EXPECT_EQ(counted(attachment, made, code::PointKind::Exit), truth);
  leave(attachment);
  EXPECT_EQ(footprint_of(victim_.pid()), before);
  EXPECT_EQ(numbers_of(victim_.ask("shapes 1")).at("early"), 10001U);
  EXPECT_EQ(counted(attachment, made, code::PointKind::Exit), truth);
  EXPECT_EQ(victim_.finish(), 0);
}

TEST_F(ExitSessions, ComeAndGoUnderAStorm) {
  EXPECT_EQ(victim_.ask("storm 4"), "storming");
  for (int round = 0; round < 20; ++round) {
    Attachment attachment = open();
    const code::Plan made = install(attachment);
    while (counted(attachment, made, code::PointKind::Exit)["target"] < 100)
      sched_yield();
    leave(attachment);
  }
  EXPECT_EQ(victim_.ask("calm"), "right");
  EXPECT_EQ(victim_.finish(), 0);
}

// A window with a probe behind an instruction has one layer: the second tracer is refused the whole
// request, or it would count half of a function's exits.
TEST_F(ExitSessions, OfTwoTracersTheSecondIsRefusedWhatCannotBeShared) {
  Attachment first = open();
  const code::Plan mine = install(first);
  Attachment second = open();
  const code::Plan other = plan(second);
  EXPECT_TRUE(other.refusals.empty());
  const auto report = install_counters(second, *module_, other);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  std::set<uint32_t> refused;
  for (const PointRefusal& refusal : report->refusals) {
    EXPECT_EQ(refusal.reason, code::RefusalReason::WindowInUse);
    refused.insert(other.points[refusal.point].request);
  }
  const Numbers truth = numbers_of(victim_.ask("shapes 1000"));
  EXPECT_EQ(counted(first, mine, code::PointKind::Exit), truth);
  const Numbers entries = counted(second, other, code::PointKind::Entry);
  const Numbers exits = counted(second, other, code::PointKind::Exit);
  for (uint32_t i = 0; i < std::size(kShapeNames); ++i) {
    const uint64_t calls = truth.at(kShapeNames[i]);
    EXPECT_EQ(entries.at(kShapeNames[i]), refused.count(2 * i) != 0 ? 0 : calls) << kShapeNames[i];
    EXPECT_EQ(exits.at(kShapeNames[i]), refused.count(2 * i + 1) != 0 ? 0 : calls)
        << kShapeNames[i];
  }
  EXPECT_EQ(refused.count(2 * std::size(kShapeNames) - 1), 0U);  // The last one returns plainly.
  EXPECT_FALSE(refused.empty());
  ASSERT_TRUE(first.detach().has_value());
  EXPECT_EQ(numbers_of(victim_.ask("shapes 1000")).at("early"), 2000U);
  leave(second);
}

// Wherever the thread is when a session comes or goes.
TEST_F(ExitSessions, ComeAndGoAtEveryInstruction) {
  constexpr unsigned kStride = 7;
  uint64_t rounds = 0;
  for (unsigned step = 0; step < 600; step += kStride) {
    stop_in_shapes("shapes 1", step);
    Attachment attachment = open();
    install(attachment);
    kill(victim_.pid(), SIGCONT);
    ++rounds;
    ASSERT_EQ(numbers_of(victim_.read_line())["early"], rounds) << "installed at step " << step;
    stop_in_shapes("shapes 1", step);
    ASSERT_NO_FATAL_FAILURE(leave(attachment));
    kill(victim_.pid(), SIGCONT);
    ++rounds;
    ASSERT_EQ(numbers_of(victim_.read_line())["early"], rounds) << "removed at step " << step;
  }
  EXPECT_EQ(victim_.finish(), 0);
}

// The forms of memcpy and its kin that check a size run on into those that do not.
TEST_F(ExitSessions, CountExitsOfTheCheckingFunctionsOfTheCLibrary) {
  const auto library = module_of(victim_.pid(), "/libc.so.6");
  std::vector<code::Request> exits;
  for (const target::Function& function : library->image.functions())
    exits.push_back({code::RequestKind::Exits, function.address});
  std::vector<code::Request> running_on;
  for (const code::Point& point : plan_windows(library->code, exits).points) {
    const bool runs_on = point.side == code::Side::Passed && point.tail_call;
    if (!runs_on) continue;
    running_on.push_back({code::RequestKind::Entry, exits[point.request].address});
    running_on.push_back(exits[point.request]);
  }
  ASSERT_FALSE(running_on.empty());
  Attachment attachment = open();
  const code::Plan made = plan_windows(library->code, running_on);
  EXPECT_TRUE(made.refusals.empty());
  const auto report = install_counters(attachment, *library, made);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(victim_.ask_number("copies 5000"), 20000);
  Numbers sums;
  for (uint32_t i = 0; i < made.points.size(); ++i)
    sums[made.points[i].kind == code::PointKind::Exit ? "exits" : "entries"] += cell(attachment, i);
  EXPECT_EQ(sums, (Numbers{{"entries", 20000}, {"exits", 20000}}));
  leave(attachment);
}

// Hand-written functions share their ends: one jumps into the middle of another.
bool is_entered_at_its_start_only(const Module& library, uint64_t function) {
  const auto index = library.code.function_starting_at(function);
  for (const code::AddressRange& part : library.code.parts_of(*index)) {
    for (uint64_t inside = part.begin; inside < part.end; ++inside) {
      if (inside != function && library.code.is_foreign_target(inside)) return false;
    }
  }
  return true;
}

// Functions of the library that have an exit behind an instruction.
std::vector<uint64_t> functions_with_ways(const Module& library) {
  std::vector<code::Request> exits;
  for (const target::Function& function : library.image.functions())
    exits.push_back({code::RequestKind::Exits, function.address});
  std::set<uint64_t> found;
  for (const code::Point& point : plan_windows(library.code, exits).points) {
    const uint64_t function = exits[point.request].address;
    if (point.side == code::Side::Before || !is_entered_at_its_start_only(library, function))
      continue;
    found.insert(function);
  }
  return {found.begin(), found.end()};
}

TEST_F(ExitSessions, OfTheCLibraryChangeNoResultAndAreAsManyAsTheCalls) {
  constexpr const char* kCommand = "strings 2000";
  const auto library = module_of(victim_.pid(), "/libc.so.6");
  const std::vector<uint64_t> functions = functions_with_ways(*library);
  EXPECT_GT(functions.size(), 100U);
  const std::string sum = victim_.ask(kCommand);
  std::map<code::RequestKind, uint64_t> counts;
  for (const code::RequestKind kind : {code::RequestKind::Entry, code::RequestKind::Exits}) {
    std::vector<code::Request> requests;
    for (const uint64_t address : functions)
      requests.push_back({kind, address});
    Attachment attachment = open();
    const code::Plan made = plan_windows(library->code, requests);
    EXPECT_TRUE(made.refusals.empty());
    ASSERT_TRUE(install_counters(attachment, *library, made, {.shared_cell = true}).has_value());
    EXPECT_EQ(victim_.ask(kCommand), sum);
    wait_for_sleep();
    counts[kind] = cell(attachment, 0);
    leave(attachment);
  }
  EXPECT_GT(counts[code::RequestKind::Entry], 10'000U);
  EXPECT_EQ(counts[code::RequestKind::Entry], counts[code::RequestKind::Exits]);
  EXPECT_EQ(victim_.ask(kCommand), sum);
}

}  // namespace
}  // namespace clew::inline_
