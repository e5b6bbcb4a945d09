// SPDX-License-Identifier: Apache-2.0
// Which functions never return: small ones, and those of installed files whose names say it.
#include "code/noreturn.h"

#include <string>

#include <gtest/gtest.h>

#include "code/image_text.h"
#include "code/text_cases.h"

namespace clew::code {
namespace {

// Offsets of the functions that never return.
std::string ends_of(const TextCase& text, const std::vector<uint64_t>& slots = {}) {
  const ModuleCode code = analyse(text.text);
  const NoReturn noreturn(code, slots);
  std::string shown;
  for (uint32_t i = 0; i < code.functions().size(); ++i) {
    if (!noreturn.never_returns(i)) continue;
    if (!shown.empty()) shown += ' ';
    shown += std::to_string(code.functions()[i].address - text.text.sections[0].address);
  }
  return shown;
}

CLEW_TEXT_CASE(chain_never, R"(
  call chain_second
  ret
  chain_second: test %edi, %edi
  je chain_third
  jmp chain_loops
  chain_third: call chain_traps
  ret
  chain_loops: pause
  jmp chain_loops
  chain_traps: hlt
  chain_may: test %edi, %edi
  je chain_traps
  ret
)");
CLEW_LABEL(chain_second);
CLEW_LABEL(chain_third);
CLEW_LABEL(chain_loops);
CLEW_LABEL(chain_traps);
CLEW_LABEL(chain_may);

TEST(NoReturn, IsInheritedByThoseWhoseEveryWayEndsThere) {
  const TextCase text = TextCase(chain_never, chain_never_end)
                            .function(chain_never, chain_second)
                            .function(chain_second, chain_third)
                            .function(chain_third, chain_loops)
                            .function(chain_loops, chain_traps)
                            .function(chain_traps, chain_may)
                            .function(chain_may, chain_never_end);
  EXPECT_EQ(ends_of(text), "0 6 12 18 22");
}

CLEW_TEXT_CASE(doubt_never, R"(
  jmp *%rax
  doubt_middle: jmp doubt_inside
  doubt_bad: .byte 0x06
  doubt_recursive: call doubt_recursive
  ret
  doubt_far: lret
  doubt_target: hlt
  doubt_inside: hlt
)");
CLEW_LABEL(doubt_middle);
CLEW_LABEL(doubt_bad);
CLEW_LABEL(doubt_recursive);
CLEW_LABEL(doubt_far);
CLEW_LABEL(doubt_target);

TEST(NoReturn, IsNotSaidInDoubt) {
  const TextCase text = TextCase(doubt_never, doubt_never_end)
                            .function(doubt_never, doubt_middle)
                            .function(doubt_middle, doubt_bad)
                            .function(doubt_bad, doubt_recursive)
                            .function(doubt_recursive, doubt_far)
                            .function(doubt_far, doubt_target)
                            .function(doubt_target, doubt_never_end);
  EXPECT_EQ(ends_of(text), std::to_string(at(doubt_target) - at(doubt_never)));
}

CLEW_TEXT_CASE(case_never, R"(
  lea case_never_table(%rip), %rdx
  movslq (%rdx,%rdi,4), %rax
  add %rdx, %rax
  jmp *%rax
  1: ud2
  case_second: ret
  .pushsection .rodata
  .balign 4
  case_never_table: .long 1b - case_never_table, case_second - case_never_table
  case_never_table_end:
  .popsection
)");
CLEW_LABEL(case_second);
CLEW_LABEL(case_never_table);
CLEW_LABEL(case_never_table_end);

TEST(NoReturn, IsNotSaidOfASwitchThatLeadsOut) {
  const TextCase text = TextCase(case_never, case_never_end)
                            .function(case_never, case_second)
                            .function(case_second, case_never_end)
                            .data(case_never_table, case_never_table_end);
  EXPECT_EQ(ends_of(text), "");
}

CLEW_TEXT_CASE(pad_never, R"(
  call pad_traps
  pad_landing: ret
  pad_traps: ud2
)");
CLEW_LABEL(pad_landing);
CLEW_LABEL(pad_traps);

TEST(NoReturn, IsNotSaidOfAFunctionThatCatches) {
  TextCase text = TextCase(pad_never, pad_never_end)
                      .function(pad_never, pad_traps)
                      .function(pad_traps, pad_never_end);
  EXPECT_EQ(ends_of(text), "0 6");
  text.text.landing_pads = {at(pad_landing)};
  EXPECT_EQ(ends_of(text), "6");
}

CLEW_TEXT_CASE(slots_never, R"(
  call slots_stub
  ret
  slots_second: call slots_other_stub
  ret
  slots_third: call *slots_word(%rip)
  ret
  slots_fourth: jmp *slots_word(%rip)
  slots_fifth: call slots_plain_stub
  ret
  slots_stub: endbr64
  .byte 0xf2; jmp *slots_word(%rip)
  slots_other_stub: endbr64
  .byte 0xf2; jmp *slots_other_word(%rip)
  slots_plain_stub: jmp *slots_word(%rip)
  .balign 8
  slots_word: .quad 0
  slots_other_word: .quad 0
)");
CLEW_LABEL(slots_second);
CLEW_LABEL(slots_third);
CLEW_LABEL(slots_fourth);
CLEW_LABEL(slots_fifth);
CLEW_LABEL(slots_stub);
CLEW_LABEL(slots_word);

TEST(NoReturn, IsKnownOfImports) {
  const TextCase text = TextCase(slots_never, slots_never_end)
                            .function(slots_never, slots_second)
                            .function(slots_second, slots_third)
                            .function(slots_third, slots_fourth)
                            .function(slots_fourth, slots_fifth)
                            .function(slots_fifth, slots_stub);
  EXPECT_EQ(ends_of(text), "");
  EXPECT_EQ(ends_of(text, {at(slots_word)}), "0 12 19 25");
}

// The functions with that name, wherever the file has them.
bool never_returns(const target::ModuleImage& image, const NoReturn& noreturn,
                   std::string_view name) {
  for (const target::Function& function : image.functions()) {
    for (const target::FunctionName& other : function.names) {
      if (other.linkage == name) return noreturn.never_returns_at(function.address);
    }
  }
  ADD_FAILURE() << "no function " << name;
  return false;
}

struct NamesGoal {
  const char* path;
  std::vector<const char*> never;
  std::vector<const char*> return_;
};

class InstalledFileEnds : public testing::TestWithParam<NamesGoal> {};

TEST_P(InstalledFileEnds, AreThoseWhoseNamesSayIt) {
  const auto image = target::ModuleImage::read(GetParam().path);
  ASSERT_TRUE(image) << image.error().message;
  const auto text = text_of(*image);
  ASSERT_TRUE(text);
  const auto slots = noreturn_slots(*image);
  ASSERT_TRUE(slots);
  const ModuleCode code = analyse(*text);
  const NoReturn noreturn(code, *slots);
  for (const char* name : GetParam().never)
    EXPECT_TRUE(never_returns(*image, noreturn, name)) << name;
  for (const char* name : GetParam().return_)
    EXPECT_FALSE(never_returns(*image, noreturn, name)) << name;
}

INSTANTIATE_TEST_SUITE_P(
    NoReturn, InstalledFileEnds,
    testing::Values(
        NamesGoal{"/lib/x86_64-linux-gnu/libc.so.6",
                  {"abort",
                   "exit",
                   "_exit",
                   "_Exit",
                   "quick_exit",
                   "thrd_exit",
                   "pthread_exit",
                   "_longjmp",
                   "siglongjmp",
                   "__longjmp_chk",
                   "__assert",
                   "__assert_fail",
                   "__assert_perror_fail",
                   "__stack_chk_fail",
                   "__chk_fail",
                   "__libc_fatal",
                   "__libc_start_main",
                   "err",
                   "errx",
                   "verr",
                   "verrx"},
                  {"malloc", "free", "printf", "read", "memcpy", "qsort", "fork", "execve", "error",
                   "warn", "__sigsetjmp", "getcontext", "raise", "kill", "on_exit", "system"}},
        NamesGoal{"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                  {"__cxa_throw", "__cxa_rethrow", "__cxa_bad_cast", "__cxa_bad_typeid",
                   "__cxa_pure_virtual", "__cxa_deleted_virtual", "_ZSt9terminatev",
                   "_ZSt20__throw_length_errorPKc", "_ZSt20__throw_out_of_rangePKc",
                   "_ZSt17__throw_bad_allocv", "_ZSt25__throw_bad_function_callv"},
                  {"__cxa_begin_catch", "__cxa_end_catch", "_Znwm", "__cxa_guard_acquire",
                   "__dynamic_cast", "__gxx_personality_v0"}},
        NamesGoal{"/lib/x86_64-linux-gnu/libgcc_s.so.1",
                  {"_Unwind_Resume"},
                  {"_Unwind_RaiseException", "_Unwind_Backtrace", "_Unwind_DeleteException"}}));

class InstalledFileCalls : public testing::TestWithParam<const char*> {};

// Who calls such an import leaves nothing behind the call that only its return would reach. This is
// what compilers know, so it is independent of how the stubs are read.
TEST_P(InstalledFileCalls, OfImportsThatNeverReturnHaveNothingBehindThem) {
  const auto image = target::ModuleImage::read(GetParam());
  ASSERT_TRUE(image) << image.error().message;
  const auto text = text_of(*image);
  ASSERT_TRUE(text);
  const auto slots = noreturn_slots(*image);
  ASSERT_TRUE(slots);
  const ModuleCode code = analyse(*text);
  const NoReturn noreturn(code, *slots);
  size_t calls = 0;
  size_t passed = 0;
  code.each_call([&](const Instruction& call) {
    const bool to_import =
        call.flow == Flow::IndirectCall || !code.range_at(branch_target(code, call));
    if (!code.range_at(call.address) || !to_import || !noreturn.is_last(call)) return;
    ++calls;
    const auto next = code.at(call.end());
    const bool ends = !next || code.is_target(call.end()) || next->flow == Flow::Nop ||
                      next->flow == Flow::Trap || next->flow == Flow::Int3 ||
                      code.run_end(call.address) == call.end();
    passed += ends ? 0 : 1;
  });
  EXPECT_GE(calls, 10U);
  EXPECT_LE(passed, calls / 100) << calls;
}

INSTANTIATE_TEST_SUITE_P(NoReturn, InstalledFileCalls,
                         testing::Values("/usr/bin/redis-server", "/usr/bin/bpftrace",
                                         "/usr/bin/ninja", "/bin/bash",
                                         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"));

}  // namespace
}  // namespace clew::code
