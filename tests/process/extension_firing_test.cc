// SPDX-License-Identifier: Apache-2.0
// Clauses that call functions in C: what these give, whose variables they see, what ends them.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "d_machine.h"
#include "kernel/bpf.h"

namespace clew::process {
namespace {

using plan::d::FiringPoint;
using testing::HasSubstr;

constexpr std::string_view kSource = R"(#include "clew.h"
static u64 seen[1024];
bool is_new(u64 size) { return seen[size % 1024]++ == 0; }

static u64 last = 5;
u64 before(u64 now) { u64 old = last; last = now; return old; }

static const u32 factors[4] = {1, 10, 100, 1000};
u64 scale(s32 n) { return n * factors[n & 3]; }

s8 narrow(s8 n) { return n; }
u16 half(u16 n) { return n; }
u64 five(u64 a, u64 b, u64 c, u64 d, u64 e) { return a + 10 * b + 100 * c + 1000 * d + 10000 * e; }

static volatile u64 turns;
u64 spin(u64 n) { while (turns != n) ++turns; turns = 0; return n; }
u64 wild(u64 *p) { for (u64 i = 1; i < 50; ++i) p[i * 997] = i; *p = 1; return *p; }

u64 scramble(u64 seed) {
  for (u64 at = 0; at < 1024; at += 8) {
    seed ^= seed >> 12; seed ^= seed << 25; seed ^= seed >> 27;
    if (seed & 3) *(volatile u64 *)at = seed & 4 ? seed : seed >> (seed & 63);
  }
  return seed;
}

s64 word_at(const long *p) { long value; return clew_read(&value, 8, p) ? value : -1; }
s64 length(const char *p) { char text[32]; return clew_read_string(text, 32, p); }
)";

RegisterFile arguments(uint64_t rdi, uint64_t rsi = 0, uint64_t rdx = 0) {
  RegisterFile registers = {};
  registers[kRdi] = rdi;
  registers[kRsi] = rsi;
  registers[kRdx] = rdx;
  return registers;
}

template <typename Value>
uint64_t address_of(const Value* value) {
  return reinterpret_cast<uint64_t>(value);
}

class ExtensionFiring : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    path_ = std::filesystem::temp_directory_path() / fmt::format("clew_d_{}_ext.c", getpid());
    std::ofstream(path_) << kSource;
  }
  static void TearDownTestSuite() { std::filesystem::remove(path_); }

  void SetUp() override {
    const auto array = kernel::create_array("trial", 8);
    if (!array) GTEST_SKIP() << "NOT TESTED: " << array.error().message;
  }

  void load(std::string_view text) {
    machine_.reset();
    auto extensions = engine::Extensions::load({path_.string()}, {CLEW_EXTENSION_DIRECTORY},
                                               {"D", query::d::is_d_function});
    ASSERT_TRUE(extensions) << extensions.error().message;
    auto script = DScript::compile(text, &*extensions);
    ASSERT_TRUE(script) << script.error().message;
    script_ = std::move(*script);
    auto machine = DMachine::make(script_.programs());
    ASSERT_TRUE(machine) << machine.error().message;
    machine_ = std::move(*machine);
    machine_->use_extensions(script_.generated);
  }

  InstalledFiring install(const FiringSite& site = {}) {
    auto firing = machine_->install(site, script_.clauses);
    EXPECT_TRUE(firing) << firing.error().message;
    return firing ? *firing : InstalledFiring{};
  }

  // What trace() of a clause recorded since, each as a number of `Value`.
  template <typename Value>
  std::vector<Value> traced() {
    std::vector<Value> values;
    for (const kernel::Record& record : machine_->read_records()) {
      const auto& action = script_.generated.records[record.header.clause].actions.at(0);
      std::memcpy(&values.emplace_back(), record.bytes.data() + action.fields.at(0).offset_bytes,
                  sizeof(Value));
    }
    return values;
  }

  // trace(`expression`) once.
  template <typename Value>
  Value value_of(std::string_view expression, const RegisterFile& registers = {}) {
    load(fmt::format("a:b:c:entry {{ trace({}); }}", expression));
    if (machine_ == nullptr) return {};
    machine_->fire(install(), registers);
    const std::vector<Value> values = traced<Value>();
    EXPECT_EQ(values.size(), 1U) << expression;
    return values.empty() ? Value{} : values[0];
  }

  // The word of the thread's id.
  uint64_t& owner() {
    auto* const bytes = reinterpret_cast<uint8_t*>(&machine_->window());
    return *reinterpret_cast<uint64_t*>(bytes + script_.generated.extensions.begin);
  }

  static inline std::filesystem::path path_;
  DScript script_;
  std::unique_ptr<DMachine> machine_;
};

TEST_F(ExtensionFiring, ArgumentsAndResultsAreConverted) {
  EXPECT_EQ(value_of<uint64_t>("five(arg0, arg1, 3, 4, 5)", arguments(1, 2)), 54321U);
  EXPECT_EQ(value_of<int8_t>("narrow(arg0)", arguments(0x1ff)), -1);
  EXPECT_EQ(value_of<int64_t>("(int64_t)narrow(arg0)", arguments(0x180)), -128);
  EXPECT_EQ(value_of<uint64_t>("(uint64_t)half(arg0)", arguments(0x1'2345)), 0x2345U);
  EXPECT_EQ(value_of<uint64_t>("scale((int)arg0)", arguments(7)), 7000U);
  EXPECT_EQ(value_of<uint64_t>("five(1, 2, 3, five(1, 0, 0, 0, 0), before(7)) + before(0)"),
            1U + 20 + 300 + 1000 + 50000 + 7);
}

TEST_F(ExtensionFiring, VariablesKeepTheirValues) {
  ASSERT_NO_FATAL_FAILURE(load("a:b:c:entry /is_new(arg0)/ { trace(arg0); }"));
  const InstalledFiring firing = install();
  for (const uint64_t size : {3, 4, 3, 5, 4, 1027, 6})
    machine_->fire(firing, arguments(size));
  EXPECT_EQ(traced<uint64_t>(), (std::vector<uint64_t>{3, 4, 5, 6}));
}

TEST_F(ExtensionFiring, VariablesBeginAsTheFileSays) {
  ASSERT_NO_FATAL_FAILURE(load("a:b:c:entry { trace(before(arg0)); }"));
  const InstalledFiring firing = install();
  for (const uint64_t value : {8, 9, 10})
    machine_->fire(firing, arguments(value));
  EXPECT_EQ(traced<uint64_t>(), (std::vector<uint64_t>{5, 8, 9}));
}

TEST_F(ExtensionFiring, TwoClausesAndTwoSitesShareThem) {
  ASSERT_NO_FATAL_FAILURE(
      load("a:b:c:entry { trace(before(arg0)); } a:b:d:entry { trace(before(arg0 + 100)); }"));
  const InstalledFiring one = install();
  const InstalledFiring other = install();
  machine_->fire(one, arguments(1));
  machine_->fire(other, arguments(2));
  EXPECT_EQ(traced<uint64_t>(), (std::vector<uint64_t>{5, 1, 101, 2}));
}

TEST_F(ExtensionFiring, AThreadThatGetsTheWindowBeginsAnew) {
  ASSERT_NO_FATAL_FAILURE(
      load("a:b:c:entry { trace(before(arg0)); } a:b:c:entry { trace((uint64_t)is_new(3)); }"));
  const InstalledFiring firing = install();
  machine_->fire(firing, arguments(8));
  EXPECT_EQ(traced<uint64_t>(), (std::vector<uint64_t>{5, 1}));
  machine_->fire(firing, arguments(9));
  EXPECT_EQ(traced<uint64_t>(), (std::vector<uint64_t>{8, 0}));
  EXPECT_EQ(owner(),
            uint64_t{static_cast<uint32_t>(getpid())} << 32 | static_cast<uint32_t>(gettid()));
  owner() += 1;
  machine_->fire(firing, arguments(10));
  EXPECT_EQ(traced<uint64_t>(), (std::vector<uint64_t>{5, 1}));
}

TEST_F(ExtensionFiring, EachThreadHasItsOwn) {
  ASSERT_NO_FATAL_FAILURE(load("a:b:c:entry /is_new(arg0)/ { @ = sum(arg0); }"));
  const InstalledFiring firing = install();
  const auto count = [&] {
    for (uint64_t i = 0; i < 300; ++i)
      machine_->fire(firing, arguments(i % 100));
  };
  count();
  std::thread([&] {
    ASSERT_TRUE(machine_->claim());
    count();
    DMachine::leave();
  }).join();
  EXPECT_EQ(machine_->aggregate(0).at(0).cells.at(0), 2U * 4950);
}

TEST_F(ExtensionFiring, PointersAreReadAndBadOnesSaySo) {
  const long words[2] = {11, -12};
  EXPECT_EQ(value_of<int64_t>("word_at(arg0)", arguments(address_of(words))), 11);
  EXPECT_EQ(value_of<int64_t>("word_at((long *)arg0 + 1)", arguments(address_of(words))), -12);
  EXPECT_EQ(value_of<int64_t>("word_at(arg0)", arguments(8)), -1);
  EXPECT_EQ(value_of<int64_t>("length(arg0)", arguments(address_of("a text"))), 6);
  EXPECT_EQ(value_of<int64_t>("length(0)"), -1);
}

// RFC 1321, A.5.
TEST_F(ExtensionFiring, FunctionsThatComeWithClewNeedNoName) {
  const auto call = [](const char* text) { return arguments(address_of(text), std::strlen(text)); };
  EXPECT_EQ(value_of<uint64_t>("md5_high(arg0, arg1)", call("abc")), 0x900150983cd24fb0U);
  EXPECT_EQ(value_of<uint64_t>("md5_low(arg0, arg1)", call("abc")), 0xd6963f7d28e17f72U);
  EXPECT_EQ(value_of<uint64_t>("md5_low(arg0, arg1)", call("abcdefghijklmnopqrstuvwxyz")),
            0x7dfb496cca67e13bU);
}

TEST_F(ExtensionFiring, ArgumentsOfTheProbeAreThereAfterACall) {
  ASSERT_NO_FATAL_FAILURE(
      load("a:b:c:entry { trace(five(arg0, arg1, arg2, before(arg1), arg0) + arg2); }"));
  const RegisterFile before = arguments(1, 2, 3);
  EXPECT_EQ(machine_->fire(install(), before), before);
  EXPECT_EQ(traced<uint64_t>(), std::vector<uint64_t>{1 + 20 + 300 + 5000 + 10000 + 3});
}

TEST_F(ExtensionFiring, EveryRegisterIsLeftAndCanBeLookedAt) {
  ASSERT_NO_FATAL_FAILURE(
      load("a:b:c:entry { trace(md5_high(arg0, 3)); }"
           "a:b:c:entry { trace(uregs[2] + spin(100)); }"
           "a:b:c:entry { trace(uregs[9] + uregs[13] + uregs[4]); }"
           "a:b:c:entry { trace(arg7); }"));
  RegisterFile before = {};
  for (uint64_t i = 0; i < before.size(); ++i)
    before[i] = 1000 * i + 7;
  before[4] = 0;
  before[kRdi] = address_of("abc");
  EXPECT_EQ(machine_->fire(install(), before, {60, 70}), before);
  EXPECT_EQ(traced<uint64_t>(),
            (std::vector<uint64_t>{0x900150983cd24fb0U, 13007 + 100, 8007 + 6007 + 5007, 70}));
}

TEST_F(ExtensionFiring, LoopsThatEndAreFine) {
  EXPECT_EQ(value_of<uint64_t>("spin(arg0)", arguments(5000)), 5000U);
  EXPECT_EQ(machine_->out_of_fuel(), 0U);
}

// Eight times, and no more: then the thread is left alone, and what it misses is counted.
TEST_F(ExtensionFiring, EndlessLoopsAreCutAndCounted) {
  ASSERT_NO_FATAL_FAILURE(load("a:b:c:entry { trace(arg0); } a:b:c:entry { trace(spin(arg0)); }"));
  const InstalledFiring firing = install();
  for (int i = 0; i < 3; ++i)
    machine_->fire(firing, arguments(uint64_t{1} << 40));
  EXPECT_EQ(machine_->out_of_fuel(), 3U);
  EXPECT_EQ(traced<uint64_t>().size(), 3U);  // Of the clauses in front of it.
  machine_->fire(firing, arguments(uint64_t{1} << 40));
  for (int i = 0; i < 20; ++i)
    machine_->fire(firing, arguments(uint64_t{1} << 40));
  EXPECT_EQ(machine_->out_of_fuel(), 8U);
  EXPECT_EQ(machine_->left_alone(), 16U);
  EXPECT_EQ(traced<uint64_t>().size(), 5U);
  owner() += 1;  // The process has had its eight: the tracer is about to take the probe out.
  machine_->fire(firing, arguments(uint64_t{1} << 40));
  EXPECT_EQ(machine_->out_of_fuel(), 8U);
  EXPECT_EQ(machine_->left_alone(), 17U);
  EXPECT_EQ(traced<uint64_t>().size(), 0U);
}

// They land in the thread's own window.
TEST_F(ExtensionFiring, WildStoresDoNoHarm) {
  std::vector<uint64_t> words(60000, 7);
  ASSERT_NO_FATAL_FAILURE(load("a:b:c:entry { trace(wild(arg0)); }"));
  const InstalledFiring firing = install();
  for (uint64_t i = 0; i < 64; ++i)
    machine_->fire(firing, arguments(address_of(words.data() + 8 * i)));
  EXPECT_EQ(words, std::vector<uint64_t>(60000, 7));
}

// The window's header may say anything when D goes on: the process lives, and so does the test.
TEST_F(ExtensionFiring, AHeaderThatAFunctionHasFilledDoesNoHarm) {
  ASSERT_NO_FATAL_FAILURE(load(R"(
      int n; string texts[int, string];
      a:b:c:entry { self->x = scramble(arg0); @[probefunc, self->x] = count(); trace(execname); }
      a:b:c:entry { self->s = speculation(); scramble(arg0 + 1); speculate(self->s);
                    printf("%s %d", strjoin(probename, probemod), uregs[2]); }
      a:b:c:entry { scramble(arg0 + 2); commit(self->s); }
      a:b:c:entry { scramble(arg0 + 3); trace(strlen(copyinstr(arg1, 9))); }
      a:b:c:entry { scramble(arg0 + 4); texts[n++, copyinstr(arg1)] = strtok("a b", " ");
                    trace(arg7); trace(epid); trace(errno); trace(id); trace(timestamp); }
      a:b:c:entry { n = scramble(arg0 + 5); trace(1 / (arg0 & 1)); }
      dtrace:::ERROR { scramble(arg0 + 6); printf("%d %s", arg4, probename); }
      a:b:c:entry { scramble(arg0 + 7); exit(1); })"));
  const InstalledFiring firing = install();
  std::vector<uint64_t> words(1000, 7);
  RegisterFile before = arguments(0, address_of(words.data()));
  bool was_filled = false;
  for (uint64_t seed = 1; seed < 3000; ++seed) {
    before[kRdi] = seed * 0x9E37'79B9'7F4A'7C15U;
    machine_->shared().activity = static_cast<uint64_t>(abi::MachineActivity::Active);
    EXPECT_EQ(machine_->fire(firing, before), before);
    static_cast<void>(machine_->read_records());
    was_filled |= machine_->window().header.reserved_null[0] != 0;
    if (seed % 64 == 0) owner() = 0;
    machine_->out_of_fuel() = 0;  // Else it would be left alone.
  }
  EXPECT_TRUE(was_filled);
  EXPECT_EQ(words, std::vector<uint64_t>(1000, 7));
}

TEST_F(ExtensionFiring, VariablesThatDoNotFitAreAnError) {
  std::ofstream(path_, std::ios::app) << "static u8 large[60000];\n"
                                         "u8 at(u64 i) { return large[i % 60000]++; }\n";
  auto extensions = engine::Extensions::load({path_.string()}, {CLEW_EXTENSION_DIRECTORY},
                                             {"D", query::d::is_d_function});
  std::ofstream(path_) << kSource;
  ASSERT_TRUE(extensions) << extensions.error().message;
  const auto script = DScript::compile("a:b:c:entry { trace(at(1)); }", &*extensions);
  ASSERT_FALSE(script);
  EXPECT_THAT(script.error().message, HasSubstr("D_NOMEM: the variables of extensions need 6"));
}

TEST_F(ExtensionFiring, TheKernelIsShownProgramsWithoutCalls) {
  ASSERT_NO_FATAL_FAILURE(load("a:b:c:entry /is_new(arg0)/ { trace(strlen(copyinstr(arg1))); }"));
  const isa::Program program =
      plan::d::without_calls(script_.generated.clauses[0], script_.generated.calls[0]);
  ASSERT_EQ(script_.generated.calls[0].size(), 1U);
  EXPECT_EQ(script_.generated.calls[0][0].function, "is_new");
  EXPECT_EQ(script_.generated.calls[0][0].line, 1U);
  kernel::MachinePrograms programs = script_.programs();
  programs.clauses = {program};
  EXPECT_TRUE(kernel::MachineSession::load(std::move(programs), {}));
}

}  // namespace
}  // namespace clew::process
