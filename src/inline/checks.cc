// SPDX-License-Identifier: Apache-2.0
// Reasons to leave a process alone.
#include "inline/checks.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "inline/permission.h"
#include "inline/segment_bases.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

// A session opens files at each of its steps, those of leaving, too: it does not begin without.
Expected<void> check_own_descriptors() {
  constexpr size_t kNeeded = 16;
  std::array<FileDescriptor, kNeeded> files;
  for (FileDescriptor& file : files) {
    file = FileDescriptor(open("/", O_PATH | O_CLOEXEC));
    if (file.valid()) continue;
    return fail(ErrorCode::Refused,
                fmt::format("Clew itself may open no {} more files, which a session on a process "
                            "needs: {}; raise `ulimit -n` [descriptors]",
                            kNeeded, error_text(errno)));
  }
  return {};
}

// struct pthread's `tid`: of glibc (unchanged since 2.4), of musl 1.2, of musl 1.1.
constexpr std::array<uint64_t, 3> kTidOffsets = {0x2d0, 0x30, 0x38};
constexpr size_t kThreadsAskedMax = 16;

// Only in a pid namespace of its own is a thread's id for itself another number, and the kernel has
// to be asked.
std::optional<uint32_t> known_tid(pid_t tid, bool in_own_namespace) {
  return in_own_namespace ? inner_tid(tid) : static_cast<uint32_t>(tid);
}

bool keeps_tid_at(StoppedTarget& target, uint64_t offset, bool in_own_namespace) {
  size_t count = 0;
  for (const StoppedThread& thread : target.threads()) {
    if (!target.is_own(thread.tid)) continue;
    if (++count > kThreadsAskedMax) break;
    const uint64_t base = thread.registers.fs_base;
    uint32_t there = 0;
    const auto bytes = std::span(reinterpret_cast<uint8_t*>(&there), sizeof there);
    if (!keeps_self_pointer(target, base) || !target.read(base + offset, bytes)) return false;
    if (there != known_tid(thread.tid, in_own_namespace)) return false;
  }
  return count != 0;
}

}  // namespace

bool keeps_self_pointer(const StoppedTarget& target, uint64_t fs_base) {
  uint64_t self = 0;
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(&self), sizeof self);
  return fs_base != 0 && target.read(fs_base, bytes) && self == fs_base;
}

std::optional<uint32_t> inner_tid(pid_t tid) {
  const auto facts = target::read_facts(tid);
  if (!facts) return std::nullopt;
  const pid_t inner = facts->namespace_pids.empty() ? tid : facts->namespace_pids.back();
  return static_cast<uint32_t>(inner);
}

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
  CLEW_TRY(check_own_descriptors());
  const target::ProcessFacts facts = CLEW_TRY(target::read_facts(pid));
  if (pid == getpid()) return fail(ErrorCode::Refused, "Clew does not trace itself [self]");
  if (facts.state == 'Z' || facts.state == 'X') {
    return fail(ErrorCode::NotFound, fmt::format("process {} has exited", pid));
  }
  CLEW_TRY(target::check_is_64_bit(pid));
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

Expected<void> check_tracer(pid_t pid, std::chrono::milliseconds patience) {
  constexpr std::chrono::microseconds kPause{500};
  Patience left(patience);
  while (true) {
    const target::ProcessFacts facts = CLEW_TRY(target::read_facts(pid));
    if (facts.tracer_pid == 0) return {};
    if (left.is_over()) return traced_by(pid, facts.tracer_pid);
    wait_briefly(kPause);
  }
}

Expected<TargetTraits> check_threads(StoppedTarget& target, const Arena* arena) {
  TargetTraits traits;
  std::vector<uint64_t> bases;
  for (const StoppedThread& thread : target.threads()) {
    const uint64_t gs = thread.registers.gs_base;
    const bool ours = arena != nullptr && arena->has_given(gs);
    if (gs != 0 && !ours) {
      return fail(ErrorCode::Refused,
                  fmt::format("thread {} of process {} uses the gs segment itself [gs-in-use]",
                              thread.tid, target.pid()));
    }
    const uint64_t fs = thread.registers.fs_base;
    if (!keeps_self_pointer(target, fs)) traits.keeps_self_pointer = false;
    if (fs != 0 && target.is_own(thread.tid)) bases.push_back(fs);
  }
  std::sort(bases.begin(), bases.end());
  const auto twice = std::adjacent_find(bases.begin(), bases.end());
  if (twice != bases.end()) {
    return fail(ErrorCode::Refused,
                fmt::format("two threads of process {} share one thread pointer "
                            "({:#x}) [shared-tls]",
                            target.pid(), *twice));
  }
  if (arena != nullptr) {
    traits.bases = arena->shape().bases;
  } else {
    traits.bases = CLEW_TRY(find_segment_bases(target, traits.keeps_self_pointer));
  }
  return traits;
}

std::vector<pid_t> bar_sharers(StoppedTarget& target) {
  std::set<uint64_t> taken;
  for (const StoppedThread& thread : target.threads()) {
    if (target.is_own(thread.tid)) taken.insert(thread.registers.fs_base);
  }
  std::vector<pid_t> barred;
  for (StoppedThread& thread : target.threads()) {
    const bool shares =
        !target.is_own(thread.tid) && !taken.insert(thread.registers.fs_base).second;
    if (!shares) continue;
    thread.registers.gs_base = Arena::kBarredGs;
    thread.registers_changed = true;
    barred.push_back(thread.tid);
  }
  return barred;
}

}  // namespace clew::inline_
