// SPDX-License-Identifier: Apache-2.0
// A process that runs a program on copies of its functions, with what it forks: its attachment, its
// lobes, and what was installed in it. It is opened where nothing of the program has run, or while
// it runs, and stays recorded until it ends, executes another one, or is left.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "abi/slot.h"
#include "base/error.h"
#include "engine/record/call_sites.h"
#include "engine/record/known_imports.h"
#include "engine/record/lobe_file.h"
#include "engine/record/module_files.h"
#include "engine/record/read_scripts.h"
#include "engine/record/standstill.h"
#include "engine/record/stops.h"
#include "engine/record/watch.h"
#include "engine/run.h"
#include "inline/answers.h"
#include "inline/attachment.h"
#include "recorder/entries.h"
#include "recorder/snap.h"
#include "target/process.h"

namespace clew::engine {

// A module of a process that is not recorded, and why.
struct LeftModule {
  std::string path;
  Error reason;
};

// What is to be recorded, and how it stands.
struct Begun {
  pid_t pid = 0;
  bool is_held = false;  // See inline_::OpenOptions.
  std::vector<std::string> command;
  bool is_running = false;  // Parts of it may be recorded before others.
  // No more of its modules, please. May be empty.
  std::function<bool()> is_over = {};
};

class RecordedProcess {
  struct Key {
    explicit Key() = default;
  };

 public:
  RecordedProcess(Key /*key*/, std::vector<std::string> command, ModuleFiles& files)
      : command_(std::move(command)), files_(files) {}
  // Null when it has no function that can be recorded. Progress goes to `notices`. Errors: those of
  // attaching, and of the program's own file. Nothing is in the process then.
  static Expected<std::unique_ptr<RecordedProcess>> open(Begun begun, ModuleFiles& files,
                                                         Notices& notices);
  RecordedProcess(const RecordedProcess&) = delete;
  RecordedProcess& operator=(const RecordedProcess&) = delete;
  // The process runs on, into memory that nobody reads; without copies nothing of us is in it.
  ~RecordedProcess();

  [[nodiscard]] const std::vector<LeftModule>& left() const { return left_; }
  // Whether a process with these mappings is it, or was forked by it.
  [[nodiscard]] bool is_in(std::span<const target::Mapping> maps) const;
  // Whether its loader waits for us: it has changed the list of modules. A cheap look.
  [[nodiscard]] bool is_loading();
  // What has been loaded is recorded from now on, if all its threads stand, and what is gone is no
  // longer. The reasons why a module is not are in left(). The loader may go on.
  void load(bool stands);
  // Whether it may load anything later.
  [[nodiscard]] bool may_load() const { return follows_loader_; }
  // A child that one of its processes forked, and that has not run. It would write into its
  // parent's lobe until an entry from outside gives it its own.
  void set_aside(pid_t child);
  // A handler of the signal is going to run in this thread: that, and where the thread is, goes
  // into its lobe.
  void caught(pid_t process, const WatchedThread& thread, int signal);
  // True of a thread that was to get a signal since a probe reads the time stamp counter, which the
  // process has forbidden itself meanwhile (prctl(2), PR_SET_TSC): it has read it then.
  [[nodiscard]] bool gives_time(pid_t process, const WatchedThread& thread) const;
  // Its slot is free for another thread, which goes on in its lobe.
  void ended(pid_t thread);
  [[nodiscard]] recorder::Snap snap_of(const Crash& crash, Standstill& threads);
  // Nobody has stopped it: its threads stand while they are copied, and for nothing else.
  [[nodiscard]] recorder::Snap snap_of(pid_t process, Stops& stops);
  // From now on the caller traces it.
  void set_held() {
    attachment_->set_held();
    is_held_ = true;
  }
  // Changes with what the process records.
  [[nodiscard]] uint64_t written(pid_t process) const;
  [[nodiscard]] pid_t pid() const { return attachment_->pid(); }
  [[nodiscard]] const std::vector<std::string>& command() const { return command_; }
  // Children that it has forked, and that are there, whether we have met them or not.
  [[nodiscard]] std::vector<pid_t> children() const { return attachment_->children(); }
  // Calls come to the originals again, in this process or in one that it forked. Copies stay, and
  // are run until the last return from them. Without `stops`: nobody traces it. Errors: Io, when
  // not all threads stand; nothing is changed then. NotFound when it has ended.
  Expected<void> leave(pid_t process, Stops* stops);

 private:
  // Exceptions may go through copies.
  bool keeps_answers();
  using Modules = std::vector<target::ProcessModule>;
  // A module that is going to be recorded.
  struct Planned {
    target::ProcessModule module;
    std::shared_ptr<const ModuleFile> file;
  };
  struct Installed {
    // Shared by all processes that have it; its copy may have been moved for another one.
    std::shared_ptr<SharedModule> module;
    recorder::SnapModule described;
    inline_::CopyRoom room;
    Planned planned;
    bool is_gone = false;  // Unloaded. Its records and copies are still there.

    [[nodiscard]] bool is_mapped(const Modules& modules) const;
    [[nodiscard]] bool has_copy_of(uint64_t pc) const {
      return pc - described.copy_address < described.code_size;
    }
    // What is recorded runs there.
    [[nodiscard]] bool runs_at(uint64_t pc) const {
      const bool by_guards = described.recipe.front_end == recorder::FrontEnd::Guards;
      return by_guards ? !is_gone && planned.module.contains(pc) : has_copy_of(pc);
    }
    // An address of this process's copy, in what is shared.
    [[nodiscard]] uint64_t in_shared(uint64_t pc) const {
      return pc - described.copy_address + module->copy().address;
    }
  };

  Expected<std::vector<Planned>> plan(pid_t pid);
  void follow_loader();
  void load_module(const target::ProcessModule& module, bool is_late);
  [[nodiscard]] bool is_known(const target::ProcessModule& module) const;
  // Nothing when the module stays as it is.
  Expected<std::optional<Planned>> plan(const target::ProcessModule& module);
  Expected<void> attach(const Begun& begun);
  Expected<void> share_lobes();
  Expected<void> adopt_lobes();
  Expected<void> record_module(const Planned& planned);
  [[nodiscard]] std::vector<recorder::StampedImport> stamped_of(
      const target::LinkedNames& names) const;
  Expected<bool> record_again(const Planned& planned);
  Expected<bool> adopt(const Planned& planned);
  enum class CopiesAre : uint8_t { New, There };
  Expected<std::vector<code::LedWindow>> write(const target::ProcessModule& module,
                                               SharedModule& shared, const inline_::CopyRoom& room,
                                               CopiesAre copies);
  Expected<void> check_same(uint64_t address, std::span<const uint8_t> bytes) const;
  // Of what is installed, and of what is going to be.
  void write_manifest(const recorder::SnapModule* next);
  Expected<inline_::CopyRoom> take_room(const target::ProcessModule& module,
                                        const recorder::Installable& installable);
  void hear(const target::ProcessModule& module, const Modules& modules);
  // Before the copies are led to.
  Expected<void> answer(const target::ProcessModule& module,
                        const recorder::Installable& installable);
  [[nodiscard]] recorder::HeadPlaces places_of(const inline_::CopyRoom& room) const;
  void give_cursors() const;
  Expected<void> reserve_nobodys_slot() const;
  [[nodiscard]] std::optional<uint32_t> slot_at(uint64_t gs_base) const;
  [[nodiscard]] uint8_t* cursor_place(uint32_t slot) const;
  void set_cursor(uint32_t slot, uint64_t cursor) const;
  [[nodiscard]] abi::SlotControl& control_of(uint32_t slot) const;
  void find_slots();
  bool free_slots(uint32_t tid);
  [[nodiscard]] std::vector<IdRange> taken_ids() const;
  [[nodiscard]] std::optional<uint64_t> cursor_in(user_regs_struct registers) const;
  [[nodiscard]] bool is_recorded(const target::ProcessModule& module) const;
  // None where reading the time stamp counter is a signal in ourselves.
  static recorder::ClockPair read_clocks();
  Modules modules_of(pid_t process);
  [[nodiscard]] recorder::Snap new_snap(pid_t process, const Modules& modules) const;
  void copy_threads(Standstill& threads, const Modules& modules, recorder::Snap& snap);
  [[nodiscard]] const Installed* installed_at(uint64_t pc) const;
  static user_regs_struct at_probe(pid_t process, const Installed& installed,
                                   user_regs_struct registers);
  [[nodiscard]] bool owns(pid_t process, const user_regs_struct& registers, uint32_t slot) const;
  [[nodiscard]] user_regs_struct in_copy(pid_t process, user_regs_struct registers) const;
  [[nodiscard]] bool is_in_recorded(uint64_t pc) const;
  [[nodiscard]] uint64_t called_from(pid_t process, const user_regs_struct& registers,
                                     const Modules& modules);
  void add_modules(const Modules& modules, recorder::Snap& snap) const;
  void add_lobes(recorder::Snap& snap) const;

  std::vector<std::string> command_;
  ModuleFiles& files_;
  KnownImports known_;
  std::vector<LeftModule> left_;
  std::optional<LobeFile> lobes_;
  std::optional<inline_::Attachment> attachment_;
  std::optional<inline_::Answers> answers_;  // Nothing when the C library has no such function.
  CallSites call_sites_;
  ScriptReader scripts_;
  std::unordered_multimap<uint32_t, uint32_t> slots_;  // By thread, as they were at the last look.
  std::optional<bool> unwinds_;                        // See keeps_answers().
  std::vector<Installed> installed_;
  std::vector<recorder::SnapModule> before_;  // Of a recorder before, which are not installed yet.
  recorder::ClockPair began_;                 // Its recording.
  uint64_t forked_ = 0;                       // The last time, by the time stamp counter.
  bool is_held_ = false;
  bool opens_libraries_ = false;
  bool follows_loader_ = false;
  uint32_t seen_requests_ = 0;
  Modules modules_;  // As the loader has them, as far as we have looked.
};

}  // namespace clew::engine
