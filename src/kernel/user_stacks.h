// SPDX-License-Identifier: Apache-2.0
// Keeps the tables by which a session's programs walk the stacks of processes
// (abi/machine/unwind.h) in step with the processes: those of the targets before the first probe
// fires, those of all others that run, if the script may fire in them, as far as a short time
// allows, and what the kernel tells of afterwards. A program that meets a process or code without
// tables says so, and is answered here. Programs in processes walk by tables in memory
// (Options::memory): then nobody tells of changes but look_at().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "kernel/link.h"
#include "kernel/maps.h"
#include "kernel/process_notices.h"
#include "kernel/unwind_tables.h"
#include "target/address_space.h"

namespace clew::kernel {

class UserStacks {
 public:
  struct Options {
    target::AddressSpaces* spaces = nullptr;  // Borrowed.
    std::vector<pid_t> targets;
    bool wants_all = false;  // Probes may fire in any process.
    // Gives zeroed memory for tables that processes read, which outlives this. Empty: they are
    // maps, and what changes is told by the kernel.
    std::function<Expected<std::span<uint8_t>>(size_t size_bytes)> memory = {};
  };

  static Expected<std::unique_ptr<UserStacks>> make(const Options& options);
  // For make().
  explicit UserStacks(const Options& options) : options_(options) {}
  UserStacks(const UserStacks&) = delete;
  UserStacks& operator=(const UserStacks&) = delete;
  ~UserStacks() {
    is_over_ = true;
    reading_.clear();  // Waits for the threads, which use what is left.
  }

  void add_symbols(Symbols& symbols) const;
  // One more target, whose files are read now.
  void add_target(pid_t pid);
  // The process may have mapped something.
  void look_at(pid_t pid);
  [[nodiscard]] size_t rows_max() const { return rows_max_; }
  // Readable when update() has something to do.
  [[nodiscard]] int poll_descriptor() const { return poll_.get(); }
  void update();

 private:
  using Clock = std::chrono::steady_clock;

  Expected<void> open_sources();
  void read_files_of(pid_t pid);
  void read_file(const target::CodeFile& file);
  void read_running();
  [[nodiscard]] bool is_read(pid_t pid) const;
  bool is_ready(pid_t pid);
  void tell_more() const;
  void put_all(const std::set<pid_t>& changed);
  void take_large_files(std::set<pid_t>& changed);
  Expected<void> make_tables();
  void apply(const ProcessNotice& notice, std::set<pid_t>& changed);
  void answer_questions(std::set<pid_t>& changed);
  void add_file(const target::CodeRange& range, const abi::MachineUnwindSegment& segment);
  void put(pid_t pid);
  [[nodiscard]] bool follows(pid_t pid) const;
  UnwindTables::Place place_of(const target::CodeFile& file);

  Options options_;
  std::set<pid_t> followed_;                                       // When not all are.
  std::map<const target::CodeFile*, target::UnwindRows> waiting_;  // Read, not yet in the tables.
  std::map<const target::CodeFile*, UnwindTables::Place> places_;
  // Large files are read by threads, so that nobody waits for them; and who waits for their tables.
  std::atomic<bool> is_over_ = false;
  std::map<const target::CodeFile*, std::future<Expected<target::UnwindRows>>> reading_;
  std::set<pid_t> delayed_;
  size_t rows_max_ = 0;
  std::optional<UnwindTables> tables_;
  std::optional<Ring> asked_;
  std::optional<ProcessNotices> notices_;
  std::set<pid_t> silenced_;  // Asked, and nothing was new: they may ask again after a while.
  Clock::time_point silenced_since_;
  FileDescriptor more_;  // An eventfd: something is left for the next update().
  FileDescriptor poll_;
};

}  // namespace clew::kernel
