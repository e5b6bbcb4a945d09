// SPDX-License-Identifier: Apache-2.0
// Rewriting of programs for trials, and the child that may do nothing.
#include "trial.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "isa/opcode.h"
#include "native/print.h"

namespace clew::native {
namespace {

using isa::Instruction;

// An unconditional far jump from instruction `from` to instruction `to`.
Instruction far_jump(size_t from, size_t to) {
  return {
      .opcode = 0x06,
      .immediate = static_cast<int32_t>(static_cast<int64_t>(to) - static_cast<int64_t>(from) - 1)};
}

bool jumps(const Instruction& i) {
  const isa::Class group = isa::class_of(i);
  if (group != isa::Class::Jump64 && group != isa::Class::Jump32) return false;
  return isa::jump_of(i) != isa::Jump::Call && isa::jump_of(i) != isa::Jump::Exit;
}

}  // namespace

isa::Program storing_result(const isa::Program& program) {
  isa::Program out = program;
  const size_t end = out.code.size();
  for (size_t i = 0; i < end; ++i) {
    if (out.code[i].opcode == 0x95) out.code[i] = far_jump(i, end);
    if (out.code[i].opcode == isa::kLoad64Opcode) ++i;
  }
  out.code.push_back({.opcode = 0x18, .registers = 0x11, .immediate = kResultOffset});
  out.code.push_back({});
  out.code.push_back({.opcode = 0x7B, .registers = 0x01});
  out.code.push_back({.opcode = 0xB7});
  out.code.push_back({.opcode = 0x95});
  return out;
}

isa::Program without_constants(const isa::Program& program) {
  constexpr int16_t kWord = -504;
  isa::Program out = program;
  out.code.clear();
  std::vector<size_t> place(program.code.size() + 1);
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& from = program.code[i];
    const bool wide = from.opcode == isa::kLoad64Opcode;
    place[i] = out.code.size();
    out.code.push_back(from);
    if (wide) out.code.push_back(program.code[++i]);
    if (!wide && from.opcode != 0xB7 && from.opcode != 0xB4) continue;
    const auto r = static_cast<uint8_t>(from.destination());
    out.code.push_back(
        {.opcode = 0x7B, .registers = static_cast<uint8_t>(r << 4 | 10), .offset = kWord});
    out.code.push_back(
        {.opcode = 0x79, .registers = static_cast<uint8_t>(0xA0 | r), .offset = kWord});
  }
  place.back() = out.code.size();
  for (size_t i = 0; i < program.code.size(); ++i) {
    Instruction& at = out.code[place[i]];
    if (program.code[i].opcode == isa::kLoad64Opcode) {
      ++i;
    } else if (jumps(program.code[i])) {
      const bool far = at.opcode == 0x06;
      const int64_t old = far ? at.immediate : at.offset;
      const auto to = place[static_cast<size_t>(static_cast<int64_t>(i) + 1 + old)];
      const int64_t distance = static_cast<int64_t>(to) - static_cast<int64_t>(place[i]) - 1;
      if (far) at.immediate = static_cast<int32_t>(distance);
      if (!far) at.offset = static_cast<int16_t>(distance);
    }
  }
  return out;
}

uint64_t word_at(std::span<const uint8_t> window, uint32_t offset) {
  uint64_t value = 0;
  std::memcpy(&value, window.data() + offset, sizeof(value));
  return value;
}

std::unique_ptr<Machine> machine(const MachineOptions& options) {
  auto made = Machine::make(options);
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return std::move(*made);
}

RegisterFile marked_registers() {
  RegisterFile registers = {};
  for (uint64_t i = 0; i < registers.size(); ++i)
    registers[i] = 0x1111'1111'1111'1111 * i + 7;
  registers[4] = 0;
  return registers;
}

std::string prepare(Machine& on, const isa::Program& program,
                    std::span<const uint64_t> site_constants) {
  const auto code = translate(program, on.environment(), site_constants);
  if (!code) return "translate: " + code.error().message;
  if (!on.install(*code)) return "out of reach";
  const auto verified = verify::check(on.body(), on.policy(code->clobbers));
  if (!verified) return verified.error().message + "\n" + print(*code);
  return "";
}

uint64_t number_of(const char* variable, uint64_t usual) {
  const char* text = std::getenv(variable);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 0);
}

void set_stepping(bool on) {
  constexpr uint64_t kTrapFlag = 0x100;
  const uint64_t flags = __builtin_ia32_readeflags_u64() & ~kTrapFlag;
  __builtin_ia32_writeeflags_u64(on ? flags | kTrapFlag : flags);
}

bool forbid_system_calls() {
  if (kSanitized) return true;  // The sanitizers make system calls of their own.
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int allowed : {SYS_mprotect, SYS_mmap, SYS_munmap, SYS_brk, SYS_madvise, SYS_exit,
                            SYS_exit_group, SYS_rt_sigreturn}) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(allowed), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog program = {.len = static_cast<uint16_t>(filter.size()), .filter = filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace clew::native
