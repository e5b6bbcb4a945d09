// SPDX-License-Identifier: Apache-2.0
// What this machine, and the user who asks, can trace. Reading is apart from judging, so that tests
// can ask about machines that they do not have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "doctor/findings.h"

namespace clew::doctor {

// Bits of CapEff (linux/capability.h).
enum class Capability : uint8_t {
  SysPtrace = 19,
  SysAdmin = 21,
  Perfmon = 38,
  Bpf = 39,
  CheckpointRestore = 40,
};

// Who asks.
struct Asker {
  uid_t user = 0;  // Effective.
  uint64_t capabilities = 0;
  bool is_filtered = false;  // By seccomp.
  bool in_first_user_namespace = true;
  bool in_first_pid_namespace = true;

  [[nodiscard]] bool has(Capability capability) const {
    return (capabilities >> static_cast<uint8_t>(capability) & 1) != 0;
  }
};

// What the kernel takes of us when it is tried.
struct KernelAbilities {
  int program_error = 0;    // errno of loading the simplest program; 0 = it was taken.
  bool is_too_old = false;  // For programs of ours, whatever our rights.
  bool has_types = false;
  bool has_open_loops = false;
  bool has_uprobes = false;
  int uprobe_error =
      0;  // errno of asking for one, if that is about our rights; 0 = we may set some.
  bool has_uprobe_multi = false;
  bool has_kprobes = false;
  bool has_kprobe_multi = false;
  std::optional<int> trampoline_error = std::nullopt;  // fexit; none = not tried.
  bool has_tracepoints = false;                        // Their descriptions in tracefs can be read.

  [[nodiscard]] bool takes_programs() const { return program_error == 0 && !is_too_old; }
};

struct Machine {
  std::string system;        // "Linux 6.1.0 x86_64"
  std::string architecture;  // "x86_64"
  bool has_fsgsbase = true;
  std::string load_refusal;  // Why memory is not read by loads (inline/vdso_load.h); empty: it is.
  bool has_shadow_stacks = false;
  std::string clock = "tsc";
  std::optional<int> yama_scope = std::nullopt;  // None: no Yama. The same for the others.
  std::optional<int> memfd_noexec = std::nullopt;
  std::optional<int> perf_paranoid = std::nullopt;
  std::optional<int> unprivileged_bpf_disabled = std::nullopt;
  bool hides_processes = false;  // /proc shows a user only their own (hidepid, proc(5)).
  std::string lockdown = {};     // none, integrity, confidentiality; empty: no such thing.
  Asker asker = {};
  KernelAbilities kernel = {};
};

Machine read_machine();
Findings judge(const Machine& machine);

}  // namespace clew::doctor
