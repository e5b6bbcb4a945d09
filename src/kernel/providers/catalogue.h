// SPDX-License-Identifier: Apache-2.0
// The catalogue of D probes: which providers there are and what a probe description matches. Lists
// are read when a description first needs them: `syscall:::` reads no tracepoints.
//
// Providers: dtrace; profile (profile-N, tick-N: made when named); syscall; rawtp and sdt (all
// tracepoints of the kernel); proc, sched, io, ip, tcp, udp, lockstat, vminfo, sysinfo (over
// tracepoints and functions); fbt; pidN, plockstatN and USDT providers (providers/user.cc).
// Processes are looked at only for a description that names its provider: `:::entry` makes no pid
// probes, and USDT probes of all processes are met by a glob (`python*:::`); those stand for the
// processes that start later, too (Probe::is_everywhere).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "kernel/glob.h"
#include "kernel/probe.h"

namespace clew::kernel {

// A file that a process, which may be gone, has mapped as code.
struct MappedFile {
  pid_t pid = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;     // 0: it is the kernel's, and no file.
  std::string path = {};  // As the process knows it.
};

class Catalogue {
 public:
  Catalogue();
  ~Catalogue();
  Catalogue(Catalogue&&) noexcept;
  Catalogue& operator=(Catalogue&&) noexcept;

  // Ids ascend from 1 in the order in which probes were first met; BEGIN, END, ERROR are 1, 2, 3.
  // Empty when nothing matches. Errors: Io, Refused (with the reason) when a provider that the
  // pattern names outright cannot be used here.
  Expected<std::vector<uint32_t>> match(const ProbePattern& pattern);
  // The same for the probes of one process, which may have mapped files since. Ids of probes that
  // were met before are given again.
  Expected<std::vector<uint32_t>> match_process(const ProbePattern& pattern, pid_t pid);
  // Of globs: the same for one file, of which the process need not be there any more.
  Expected<std::vector<uint32_t>> match_file(const ProbePattern& pattern, const MappedFile& file);
  // A process of -p or -c: `pid*` is its provider, too.
  void add_target(pid_t pid);

  // By id. Valid until the next match().
  [[nodiscard]] const Probe* find(uint32_t id) const;
  // Every probe that can be listed (`dtrace -l`), by id: all providers but pidN and USDT, and those
  // of the latter that were matched before.
  Expected<void> for_each(const std::function<void(const Probe&)>& take);

  // The C types of args[0], args[1], …, as text ("struct task_struct *", "pid_t"; always a name,
  // perhaps after struct, union or enum, and stars), and how each is made: src > dst translators
  // are the checker's business. Empty: the probe has no args[].
  struct Argument {
    std::string native_type;      // What the attach point gives.
    std::string translated_type;  // What args[i] is; equal to native_type when no translator is
                                  // needed. "psinfo_t *", "bufinfo_t *", …
    uint8_t mapping = 0;          // args[i] is made of arg<mapping> of the program.
    bool is_userland = false;     // A pointer, and it points into the process.
  };
  [[nodiscard]] Expected<std::vector<Argument>> arguments(uint32_t id) const;

  // How stable a probe and its arguments are, as D writes it ("Evolving/Evolving/Common"), where
  // the file of its provider says it; else its provider's name does.
  struct Stability {
    std::string probe;
    std::string arguments;
  };
  [[nodiscard]] std::optional<Stability> stability(uint32_t id) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace clew::kernel
