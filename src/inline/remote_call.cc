// SPDX-License-Identifier: Apache-2.0
// System calls made by a stopped thread for us. What is built below the thread's red zone:
//
//     call_stack_    address of the restorer           `ret` after `syscall` pops it
//     +8             ucontext: the thread's registers, signal mask, pointer to its FPU state
//     scratch_       kScratchBytes for arguments
//     above          FPU state (64-byte aligned), then the red zone and the program's stack
//
// A thread whose tracer is there never gets to the `ret`: it is stopped at the end of the call.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <cpuid.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error_text.h"
#include "inline/interrupted_call.h"
#include "inline/stopped_target.h"

namespace clew::inline_ {
namespace {

constexpr std::array<uint8_t, 3> kCallAndReturn = {0x0f, 0x05, 0xc3};
constexpr std::array<uint8_t, 9> kRestorer = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
constexpr uint64_t kRedZone = 128;
constexpr uint64_t kSearchMax = 8ULL << 20;  // Bytes of one mapping that are searched for gadgets,
constexpr uint64_t kSearchPiece = 64ULL << 10;  // so many of them at a time.
constexpr uint64_t kAllSignals = ~uint64_t{0};
constexpr int kRegisterSetXstate = 0x202;  // NT_X86_XSTATE
constexpr uint64_t kXstateMax = 16384;
// A signal frame's FPU state (Linux, asm/sigcontext.h).
constexpr uint32_t kXstateMagic1 = 0x46505853;
constexpr uint32_t kXstateMagic2 = 0x46505845;
constexpr size_t kXstateSoftwareOffset = 464;
constexpr size_t kXstateFeaturesOffset = 512;
constexpr uint32_t kXstateSizeMin = 576;             // The legacy part, and the header.
constexpr uint64_t kLegacyFeatures = 0b11;           // x87, SSE.
constexpr uint64_t kProtectionKeys = 1U << 9;        // PKRU.
constexpr uint64_t kContextFlags = 0x1 | 0x2 | 0x4;  // UC_FP_XSTATE, SIGCONTEXT_SS, STRICT_SS

struct SignalContext {
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
  uint64_t flags;
  uint16_t cs, gs, fs, ss;
  uint64_t error, trap, old_mask, cr2;
  uint64_t fpu_state;
  uint64_t reserved[8];
};
static_assert(sizeof(SignalContext) == 256);

struct SignalFrame {
  uint64_t restorer;
  uint64_t context_flags;
  uint64_t context_link;
  uint64_t stack_address;
  uint32_t stack_flags;
  uint32_t reserved;
  uint64_t stack_size;
  SignalContext context;
  uint64_t mask;
};
static_assert(sizeof(SignalFrame) == 312);

struct XstateSoftware {
  uint32_t magic1;
  uint32_t extended_size;
  uint64_t features;
  uint32_t xstate_size;
};

// Registers with which an interrupted system call is made again. Those with a time-out, too, with
// the whole of it: rt_sigreturn makes restart_syscall(2) an EINTR (Linux, restore_sigcontext).
user_regs_struct after_restart(user_regs_struct registers) {
  if (!is_to_restart(registers)) return registers;
  registers.rax = registers.orig_rax;
  registers.rip -= 2;
  return registers;
}

// What a thread suffers that restores itself. 2: its wait with a time-out ends with EINTR, as the
// number of the call is not known any more. 1: its wait begins again, with the whole time-out.
unsigned harm_if_killed(const user_regs_struct& registers) {
  if (static_cast<int64_t>(registers.rax) != kRestartBlock) return 0;
  return registers.orig_rax == SYS_restart_syscall ? 2 : 1;
}

// A signal that is let go while it is blocked waits behind our calls, with all that is known of it
// (Linux, ptrace_signal in kernel/signal.c). These cannot be blocked.
bool can_wait(int signal) {
  return signal != SIGSTOP && signal != SIGKILL;
}

SignalContext context_of(const user_regs_struct& r) {
  SignalContext c = {};
  c.r8 = r.r8, c.r9 = r.r9, c.r10 = r.r10, c.r11 = r.r11;
  c.r12 = r.r12, c.r13 = r.r13, c.r14 = r.r14, c.r15 = r.r15;
  c.rdi = r.rdi, c.rsi = r.rsi, c.rbp = r.rbp, c.rbx = r.rbx;
  c.rdx = r.rdx, c.rax = r.rax, c.rcx = r.rcx, c.rsp = r.rsp;
  c.rip = r.rip, c.flags = r.eflags;
  c.cs = static_cast<uint16_t>(r.cs), c.ss = static_cast<uint16_t>(r.ss);
  return c;
}

// Of a processor without XSAVE: x87 and SSE, and nothing in the software bytes.
std::vector<uint8_t> legacy_fpu_state_of(pid_t tid) {
  user_fpregs_struct registers = {};
  if (ptrace(PTRACE_GETFPREGS, tid, nullptr, &registers) != 0) return {};
  std::vector<uint8_t> state(sizeof registers);
  std::memcpy(state.data(), &registers, sizeof registers);
  std::memset(state.data() + kXstateSoftwareOffset, 0, state.size() - kXstateSoftwareOffset);
  return state;
}

// Of the whole state up to the last feature in use, in bytes (SDM volume 1, 13.4: of each feature,
// its size and its place).
uint32_t xstate_size_of(uint64_t in_use) {
  uint32_t size = kXstateSizeMin;
  for (unsigned feature = 2; feature < 63; ++feature) {
    if ((in_use >> feature & 1) == 0) continue;
    uint32_t length = 0;
    uint32_t offset = 0;
    uint32_t flags = 0;
    uint32_t unused = 0;
    __cpuid_count(0xd, feature, length, offset, flags, unused);
    size = std::max(size, offset + length);
  }
  return size;
}

// The FPU state of the thread in the form that sigreturn reads; empty when it cannot be had.
//
// Only what is in use: what we are shown has room for features that the thread has not asked for
// (of Intel's AMX, 8 KiB), and the kernel takes no more than the thread's own signals have room
// for: else it restores x87 and SSE alone (Linux, check_xstate_in_sigframe). What is not in use is
// made as it was at the beginning, which is what it is.
std::vector<uint8_t> fpu_state_of(pid_t tid) {
  std::vector<uint8_t> state(kXstateMax);
  iovec io = {.iov_base = state.data(), .iov_len = state.size()};
  const int64_t done = ptrace(static_cast<__ptrace_request>(PTRACE_GETREGSET), tid,
                              reinterpret_cast<void*>(uint64_t{kRegisterSetXstate}), &io);
  if (done != 0 || io.iov_len < kXstateSizeMin) return legacy_fpu_state_of(tid);
  // The kernel leaves the features that it enables in the software bytes.
  XstateSoftware software = {};
  std::memcpy(&software.features, state.data() + kXstateSoftwareOffset, 8);
  uint64_t in_use = 0;
  std::memcpy(&in_use, state.data() + kXstateFeaturesOffset, 8);
  // Its value is there whatever this bit says (Linux, copy_xstate_to_uabi_buf).
  in_use = (in_use | kProtectionKeys) & software.features;
  std::memcpy(state.data() + kXstateFeaturesOffset, &in_use, 8);
  software.magic1 = kXstateMagic1;
  software.features = in_use | kLegacyFeatures;
  software.xstate_size = xstate_size_of(in_use);
  if (software.xstate_size > io.iov_len) return {};
  software.extended_size = software.xstate_size + uint32_t{sizeof kXstateMagic2};
  state.resize(software.extended_size);
  std::memcpy(state.data() + kXstateSoftwareOffset, &software, sizeof software);
  std::memcpy(state.data() + software.xstate_size, &kXstateMagic2, sizeof kXstateMagic2);
  return state;
}

std::optional<uint64_t> find_bytes(std::span<const uint8_t> where, std::span<const uint8_t> what) {
  const void* const at = memmem(where.data(), where.size(), what.data(), what.size());
  if (at == nullptr) return std::nullopt;
  return static_cast<uint64_t>(static_cast<const uint8_t*>(at) - where.data());
}

// What is found first counts.
struct FoundGadgets {
  Gadgets gadgets;
  uint64_t only_call = 0;  // Without a return behind it.

  [[nodiscard]] bool is_whole() const { return gadgets.system_call != 0 && gadgets.restorer != 0; }
  void look_in(uint64_t address, std::span<const uint8_t> bytes) {
    const auto note = [&](uint64_t& place, std::span<const uint8_t> what) {
      if (place != 0) return;
      if (const auto at = find_bytes(bytes, what)) place = address + *at;
    };
    note(only_call, std::span(kCallAndReturn).first(2));
    note(gadgets.system_call, kCallAndReturn);
    note(gadgets.restorer, kRestorer);
  }
};

}  // namespace

Expected<Gadgets> find_gadgets(pid_t pid) {
  constexpr uint64_t kOverlap = kRestorer.size() - 1;
  FoundGadgets found;
  std::vector<uint8_t> piece(kSearchPiece + kOverlap);
  for (const target::Mapping& map : CLEW_TRY(target::read_memory_map(pid))) {
    // Shared text is an arena, which may be about to go.
    const bool useless = !map.executable || !map.readable || map.shared || map.path == "[vsyscall]";
    if (useless) continue;
    const uint64_t size = std::min<uint64_t>(map.size_bytes(), kSearchMax);
    for (uint64_t offset = 0; offset < size && !found.is_whole(); offset += kSearchPiece) {
      const auto bytes = std::span(piece).first(std::min<uint64_t>(piece.size(), size - offset));
      if (!target::read_memory(pid, map.start + offset, bytes)) break;
      found.look_in(map.start + offset, bytes);
    }
    if (found.is_whole()) return found.gadgets;
  }
  if (found.only_call != 0) return Gadgets{.system_call = found.only_call, .restorer = 0};
  return fail(ErrorCode::Refused,
              fmt::format("process {} has no system call instruction [no-syscall]", pid));
}

// As call() leaves a thread: at a gadget, with a frame that heals it on its stack.
bool StoppedTarget::is_before_call(const StoppedThread& thread) const {
  std::array<uint8_t, kCallAndReturn.size()> call{};
  if (!read(thread.registers.rip, call) || call != kCallAndReturn) return false;
  uint64_t restorer = 0;
  const auto word = std::span(reinterpret_cast<uint8_t*>(&restorer), sizeof restorer);
  std::array<uint8_t, kRestorer.size()> code{};
  return read(thread.registers.rsp, word) && read(restorer, code) && code == kRestorer;
}

Expected<void> StoppedTarget::finish_calls_of_dead_tracers() {
  constexpr unsigned kRoundsMax = 100;
  for (unsigned round = 0; round < kRoundsMax; ++round) {
    std::vector<size_t> waiting;
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (is_before_call(threads_[i])) waiting.push_back(i);
    }
    if (waiting.empty()) return {};
    CLEW_TRY(run_briefly(waiting, std::chrono::microseconds(500)));
  }
  return {};
}

// A module that held them may be gone.
bool StoppedTarget::has_gadgets() const {
  std::array<uint8_t, kCallAndReturn.size()> call{};
  std::array<uint8_t, kRestorer.size()> restorer{};
  if (gadgets_.system_call == 0 || !read(gadgets_.system_call, call)) return false;
  if (call[0] != kCallAndReturn[0] || call[1] != kCallAndReturn[1]) return false;
  return gadgets_.restorer == 0 ||
         (call == kCallAndReturn && read(gadgets_.restorer, restorer) && restorer == kRestorer);
}

Expected<void> StoppedTarget::begin_calls() {
  if (calling_) return {};
  if (!has_gadgets()) gadgets_ = CLEW_TRY(find_gadgets(pid_));
  Error last = {ErrorCode::Io, "all threads are being stopped, or filter their system calls"};
  std::vector<size_t> callers;
  for (size_t i = 0; i < threads_.size(); ++i) {
    // One of another process, on the same memory, has other descriptors.
    if (can_wait(threads_[i].pending_signal) && is_own(threads_[i].tid)) callers.push_back(i);
  }
  const auto rank = [this](size_t index) {
    const StoppedThread& thread = threads_[index];
    return 2 * harm_if_killed(thread.registers) + (thread.pending_signal != 0 ? 1 : 0);
  };
  std::stable_sort(callers.begin(), callers.end(),
                   [&](size_t a, size_t b) { return rank(a) < rank(b); });
  for (const size_t i : callers) {
    if (has_own_filter(threads_[i])) continue;
    const auto begun = begin_calls_on(i);
    if (begun) return {};
    last = begun.error();
  }
  return tl::unexpected(last);
}

bool StoppedTarget::is_own(pid_t tid) const {
  return sharers_.empty() || access(fmt::format("/proc/{}/task/{}", pid_, tid).c_str(), F_OK) == 0;
}

// It would judge our calls. Those of the whole process, which its first thread has, are suspended.
bool StoppedTarget::has_own_filter(const StoppedThread& thread) const {
  return !filtered_ && is_filtered(thread.tid);
}

// From the first change of the thread's registers on, it would restore itself if we died.
Expected<void> StoppedTarget::begin_calls_on(size_t index) {
  const StoppedThread& thread = threads_[index];
  if (ptrace(static_cast<__ptrace_request>(PTRACE_GETSIGMASK), thread.tid,
             reinterpret_cast<void*>(8), &caller_mask_) != 0) {
    return fail(ErrorCode::Io, fmt::format("signal mask: {}", error_text(errno)));
  }
  const std::vector<uint8_t> fpu = fpu_state_of(thread.tid);
  const uint64_t top = thread.registers.rsp - kRedZone;
  const uint64_t fpu_address = (top - fpu.size()) & ~uint64_t{63};
  scratch_ = (fpu_address - kScratchBytes) & ~uint64_t{15};
  call_stack_ = ((scratch_ - sizeof(SignalFrame)) & ~uint64_t{15}) - 8;
  SignalFrame frame = {};
  frame.restorer = gadgets_.restorer;
  frame.context_flags = kContextFlags;
  frame.stack_flags = 0x7;  // Not a state: the alternate stack stays as it is.
  frame.context = context_of(after_restart(thread.registers));
  frame.context.fpu_state = fpu.empty() ? 0 : fpu_address;
  frame.mask = caller_mask_;
  std::vector<uint8_t> bytes(top - call_stack_);
  saved_stack_.resize(bytes.size());
  // A fiber's stack may end here and other data begin: what we write over is put back.
  CLEW_TRY(read(call_stack_, saved_stack_));
  std::memcpy(bytes.data(), &frame, sizeof frame);
  if (!fpu.empty()) std::memcpy(bytes.data() + (fpu_address - call_stack_), fpu.data(), fpu.size());
  CLEW_TRY(write(call_stack_, bytes));
  caller_ = index;
  calling_ = true;
  user_regs_struct healing = thread.registers;
  healing.orig_rax = ~uint64_t{0};
  healing.rip = gadgets_.restorer;
  healing.rsp = call_stack_ + 8;
  uint64_t all = kAllSignals;
  const bool can_heal = gadgets_.restorer != 0;
  if ((can_heal && ptrace(PTRACE_SETREGS, thread.tid, nullptr, &healing) != 0) ||
      ptrace(static_cast<__ptrace_request>(PTRACE_SETSIGMASK), thread.tid,
             reinterpret_cast<void*>(8), &all) != 0) {
    return fail(ErrorCode::Io, fmt::format("thread {}: {}", thread.tid, error_text(errno)));
  }
  return {};
}

Expected<uint64_t> StoppedTarget::scratch() {
  CLEW_TRY(begin_calls());
  return scratch_;
}

// Status of the next stop of `tid` that is not about SIGSTOP and its like.
Expected<int> StoppedTarget::wait_call_stop(pid_t tid) {
  constexpr int kSystemCallStop = SIGTRAP | 0x80;
  constexpr unsigned kStopsMax = 64;
  for (unsigned i = 0; i < kStopsMax; ++i) {
    // The kernel keeps it for later, as it is blocked now.
    const auto signal = static_cast<uint64_t>(std::exchange(threads_[caller_].pending_signal, 0));
    if (ptrace(PTRACE_SYSCALL, tid, nullptr, reinterpret_cast<void*>(signal)) != 0) break;
    int status = 0;
    if (!wait_for_stop(tid, status)) break;
    if (WSTOPSIG(status) == kSystemCallStop) return status;
    // SIGSTOP cannot be blocked: it is sent again when the thread has its own state back.
    const bool event = status >> 16 != 0;
    if (!event) deferred_signal_ = WSTOPSIG(status);
  }
  return fail(ErrorCode::NotFound, fmt::format("process {} died in a system call", pid_));
}

Expected<int64_t> StoppedTarget::call(const RemoteCall& call) {
  CLEW_TRY(begin_calls());
  const StoppedThread& thread = threads_[caller_];
  user_regs_struct registers = thread.registers;
  registers.rip = gadgets_.system_call;
  registers.rsp = call_stack_;
  registers.rax = static_cast<uint64_t>(call.number);
  registers.orig_rax = ~uint64_t{0};  // Nothing is restarted.
  registers.rdi = call.arguments[0];
  registers.rsi = call.arguments[1];
  registers.rdx = call.arguments[2];
  registers.r10 = call.arguments[3];
  registers.r8 = call.arguments[4];
  registers.r9 = call.arguments[5];
  if (ptrace(PTRACE_SETREGS, thread.tid, nullptr, &registers) != 0) {
    return fail(ErrorCode::NotFound, fmt::format("thread {} is gone", thread.tid));
  }
  CLEW_TRY(wait_call_stop(thread.tid));  // Entry.
  CLEW_TRY(wait_call_stop(thread.tid));  // Exit.
  if (ptrace(PTRACE_GETREGS, thread.tid, nullptr, &registers) != 0) {
    return fail(ErrorCode::NotFound, fmt::format("thread {} is gone", thread.tid));
  }
  return static_cast<int64_t>(registers.rax);
}

Expected<uint64_t> StoppedTarget::checked_call(const char* what, const RemoteCall& remote) {
  const int64_t result = CLEW_TRY(call(remote));
  if (result >= 0 || result < -4095) return static_cast<uint64_t>(result);
  if (result == -EMFILE) {
    return fail(
        ErrorCode::Refused,
        fmt::format("process {0} has as many files open as it may, and a session needs some "
                    "for a moment; prlimit --pid {0} --nofile=… raises that [descriptors]",
                    pid_));
  }
  return fail(ErrorCode::Io, fmt::format("{} in process {}: {}", what, pid_,
                                         error_text(static_cast<int>(-result))));
}

// The mask first: while the registers are ours, a thread without tracer restores itself.
Expected<void> StoppedTarget::end_calls() {
  if (!calling_) return {};
  calling_ = false;
  const StoppedThread& thread = threads_[caller_];
  const int signal = std::exchange(deferred_signal_, 0);
  const bool masked = ptrace(static_cast<__ptrace_request>(PTRACE_SETSIGMASK), thread.tid,
                             reinterpret_cast<void*>(8), &caller_mask_) == 0;
  const bool restored = ptrace(PTRACE_SETREGS, thread.tid, nullptr, &thread.registers) == 0;
  if (!masked || !restored) {
    return fail(ErrorCode::Io, fmt::format("thread {}: {}", thread.tid, error_text(errno)));
  }
  if (signal != 0) (void)syscall(SYS_tgkill, pid_, thread.tid, signal);
  return write(call_stack_, saved_stack_);
}

}  // namespace clew::inline_
