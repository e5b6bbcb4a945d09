// SPDX-License-Identifier: Apache-2.0
// Reasons to leave a process alone.
#include "inline/checks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "target/process.h"

namespace clew::inline_ {
namespace {

constexpr uint64_t kAuxHwcap2 = 26;
constexpr uint64_t kHwcap2FsGsBase = 2;  // Linux asm/hwcap2.h: bit 1.

// A value of the kernel's auxiliary vector for the process; 0 when it is not there.
uint64_t auxiliary_value(pid_t pid, uint64_t key) {
  std::ifstream file(fmt::format("/proc/{}/auxv", pid), std::ios::binary);
  std::array<uint64_t, 2> entry{};
  while (file.read(reinterpret_cast<char*>(entry.data()), sizeof entry)) {
    if (entry[0] == key) return entry[1];
  }
  return 0;
}

bool self_pointer_is_there(const StoppedTarget& target, uint64_t fs_base) {
  uint64_t self = 0;
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(&self), sizeof self);
  return fs_base != 0 && target.read(fs_base, bytes) && self == fs_base;
}

// struct pthread's `tid`: of glibc (unchanged since 2.4), of musl 1.2, of musl 1.1.
constexpr std::array<uint64_t, 3> kTidOffsets = {0x2d0, 0x30, 0x38};
constexpr size_t kThreadsAskedMax = 16;

// As the thread itself knows it. Only in a pid namespace of its own is that another number, and the
// kernel has to be asked.
std::optional<uint32_t> inner_tid(pid_t tid, bool in_own_namespace) {
  if (!in_own_namespace) return static_cast<uint32_t>(tid);
  const auto facts = target::read_facts(tid);
  if (!facts) return std::nullopt;
  const pid_t inner = facts->namespace_pids.empty() ? tid : facts->namespace_pids.back();
  return static_cast<uint32_t>(inner);
}

bool keeps_tid_at(StoppedTarget& target, uint64_t offset, bool in_own_namespace) {
  const size_t count = std::min(target.threads().size(), kThreadsAskedMax);
  for (const StoppedThread& thread : target.threads().first(count)) {
    const uint64_t base = thread.registers.fs_base;
    uint32_t there = 0;
    const auto bytes = std::span(reinterpret_cast<uint8_t*>(&there), sizeof there);
    if (!self_pointer_is_there(target, base) || !target.read(base + offset, bytes)) return false;
    if (there != inner_tid(thread.tid, in_own_namespace)) return false;
  }
  return count != 0;
}

}  // namespace

uint64_t find_tid_offset(StoppedTarget& target) {
  const auto facts = target::read_facts(target.pid());
  const bool in_own_namespace = !facts || facts->namespace_pids.size() != 1;
  const auto found = std::find_if(kTidOffsets.begin(), kTidOffsets.end(), [&](uint64_t offset) {
    return keeps_tid_at(target, offset, in_own_namespace);
  });
  return found == kTidOffsets.end() ? abi::kTidFromNobody : *found;
}

bool has_run(StoppedTarget& target) {
  const auto threads = target.threads();
  return threads.size() > 1 || (!threads.empty() && threads.front().registers.fs_base != 0);
}

Expected<void> check_process(pid_t pid) {
  const target::ProcessFacts facts = CLEW_TRY(target::read_facts(pid));
  if (pid == getpid()) return fail(ErrorCode::Refused, "Clew does not trace itself [self]");
  if (facts.state == 'Z' || facts.state == 'X') {
    return fail(ErrorCode::NotFound, fmt::format("process {} has exited", pid));
  }
  CLEW_TRY(target::check_is_64_bit(pid));
  if (facts.tracer_pid != 0) {
    return fail(ErrorCode::Refused, fmt::format("process {} is traced by process {} (a debugger?); "
                                                "end that one first [already-traced]",
                                                pid, facts.tracer_pid));
  }
  if (facts.seccomp == target::ProcessFacts::Seccomp::Strict) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} allows no system calls [seccomp]", pid));
  }
  // A displaced call pushes its return address as data.
  if (facts.has_shadow_stack) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} has a shadow stack; start it with "
                            "GLIBC_TUNABLES=glibc.cpu.x86_shstk=off [shadow-stack]",
                            pid));
  }
  return {};
}

Expected<TargetTraits> check_threads(StoppedTarget& target, const Arena* arena) {
  if ((auxiliary_value(target.pid(), kAuxHwcap2) & kHwcap2FsGsBase) == 0) {
    return fail(ErrorCode::Refused,
                "the kernel does not let programs set their gs base; Linux 5.9 "
                "or newer on an Ivy Bridge or newer is needed [fsgsbase]");
  }
  TargetTraits traits;
  std::vector<uint64_t> bases;
  for (const StoppedThread& thread : target.threads()) {
    const uint64_t gs = thread.registers.gs_base;
    const bool ours = arena != nullptr && arena->contains_slot(gs);
    if (gs != 0 && !ours) {
      return fail(ErrorCode::Refused,
                  fmt::format("thread {} of process {} uses the gs segment itself [gs-in-use]",
                              thread.tid, target.pid()));
    }
    const uint64_t fs = thread.registers.fs_base;
    if (!self_pointer_is_there(target, fs)) traits.fs_base_instruction = true;
    if (fs != 0) bases.push_back(fs);
  }
  std::sort(bases.begin(), bases.end());
  const auto twice = std::adjacent_find(bases.begin(), bases.end());
  if (twice != bases.end()) {
    return fail(ErrorCode::Refused,
                fmt::format("two threads of process {} share one thread pointer "
                            "({:#x}) [shared-tls]",
                            target.pid(), *twice));
  }
  return traits;
}

}  // namespace clew::inline_
