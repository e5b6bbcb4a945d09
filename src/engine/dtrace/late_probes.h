// SPDX-License-Identifier: Apache-2.0
// Probes of programs and libraries that come when tracing is on: whenever a process maps a file
// that was not seen before, the script's descriptions of processes are matched again there.
//
// Between the mapping and the new probes lie a few milliseconds. A USDT probe that is met by a glob
// (`python*:::`) and whose file was there from the start misses nothing: it is set in the file.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include <poll.h>

#include "engine/dtrace/console.h"
#include "engine/dtrace/inline_probes.h"
#include "engine/dtrace/script_compiler.h"
#include "engine/waiting_uprobes.h"
#include "inline/process_lock.h"
#include "kernel/machine_session.h"
#include "kernel/process_notices.h"
#include "kernel/providers/catalogue.h"
#include "session/driven.h"

namespace clew::engine {

class LateProbes final : public session::Driven {
 public:
  static constexpr uint32_t kProbesMax = 8192;

  // Whether any description looks into processes.
  static bool may_come(const CompiledScript& compiled);

  // All are borrowed.
  LateProbes(const CompiledScript& compiled, kernel::Catalogue& catalogue,
             kernel::MachineSession& session, const InlineProbes& inline_probes,
             DtraceConsole& console);
  // How other sessions are waited for.
  void set_wait(inline_::LockWait wait) { waiting_.set_wait(std::move(wait)); }
  // From here on nothing is missed. When the kernel does not let us watch, a line says so.
  void start();
  void add_descriptors(std::vector<pollfd>& descriptors) override;
  std::chrono::nanoseconds patience() override;
  // Looks at what was mapped since.
  Expected<void> turn() override;

 private:
  // A description, its clause, and the process that it names (0 = a glob).
  struct Followed {
    kernel::ProbePattern pattern{};
    pid_t pid = 0;
    uint32_t clause = 0;
    bool is_for_process = false;  // The kernel, which all late probes are of, cannot run it.
  };
  using File =
      std::tuple<uint64_t, uint64_t, pid_t>;  // Device, inode, and a process that is named.

  void follow(const query::d::ProbeDescription& description, Followed followed);
  void look();
  void remember_inline(const CompiledScript& compiled);
  void tell_loaded_again(const kernel::ProcessNotice& notice);
  void tell_missing(std::string_view why);
  void look_again();
  void look_at(pid_t pid);
  void look_at(const kernel::MappedFile& file);
  [[nodiscard]] bool stays_behind(const kernel::Probe& probe, const Followed& followed);
  void enable(const std::vector<std::pair<uint32_t, const Followed*>>& found);
  void enable_waiting();

  kernel::Catalogue& catalogue_;
  kernel::MachineSession& session_;
  const InlineProbes& inline_probes_;
  DtraceConsole& console_;
  std::vector<Followed> followed_;
  std::set<pid_t> named_;  // Processes that descriptions name.
  bool has_globs_ = false;
  std::set<uint32_t> enabled_;  // Ids of probes.
  std::set<File> seen_;
  std::set<std::pair<pid_t, uint64_t>> inline_files_;  // Inodes of files with inline probes.
  std::optional<kernel::ProcessNotices> notices_;
  bool has_told_ = false;
  WaitingUprobes waiting_;
};

}  // namespace clew::engine
