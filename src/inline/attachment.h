// SPDX-License-Identifier: Apache-2.0
// VerifiedCode -> Attachment: one session's presence in one running process. This header is all
// that the engine needs; the parts are stopped_target.h (stopping threads, remote system calls),
// arena.h (memory), trampoline.h (bytes) and site_journal.h (what is where, for whoever cleans up).
//
//     open(pid)            the arena is mapped, or shared with the sessions that are there already
//     lay_out(requests)    says where each body will be and what it may call; nothing changes
//     install(layout, b)   all threads stopped once: jumps written, threads moved out of windows
//     wait(timeout)        what happened to the target
//     detach()             all threads stopped once: text as the file has it, arena unmapped
//
// Invariants. The target runs correctly after each single step of ours, also when we are killed
// there. What is about to be changed is in the journal before. Text that is not what we expect is
// never written. An Attachment that is destroyed without detach() detaches.
//
// Threads: one Attachment is used by one thread at a time, and each call of open, install, detach
// must finish on the thread it started on (the kernel ties ptrace to threads).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "abi/accessor.h"
#include "abi/arena.h"
#include "abi/stub.h"
#include "base/error.h"
#include "base/file_descriptor.h"
#include "code/led_window.h"
#include "code/refusal.h"
#include "code/relocate.h"
#include "code/window.h"
#include "code/windows.h"
#include "inline/changed_text.h"
#include "inline/copy_way.h"
#include "inline/process_lock.h"
#include "target/process.h"
#include "verify/verified_code.h"

namespace clew::inline_ {

struct OpenOptions {
  abi::RegionLayout region;  // Of this session; region.size_log2 decides what a slot must hold.
  abi::ForkPolicy fork_policy = abi::ForkPolicy::Mute;  // The first session on a process decides.
  std::chrono::milliseconds stop_timeout{1000};         // For all threads to stop, else roll back.
  // The target's loader waits for us after dlopen, see wait(). Nothing happens in programs without
  // a loader.
  bool follow_modules = false;
  // The caller traces the process, with PTRACE_O_TRACESYSGOOD, and all its threads stand whenever
  // the attachment is asked for anything. The caller lets them go.
  bool is_held = false;
  // Refused where another session is: its jumps would be passed by.
  bool is_alone = false;
  // Where copies are that nobody leads to any more, the session that made them is gone on with:
  // what it has in slots stays, since threads in the copies use it.
  bool adopts_copies = false;
  std::chrono::milliseconds loader_timeout{200};  // How long it waits at most.
  // For a caller who holds it over more than one step, and may be gone before or after the
  // attachment. Null: the attachment has its own.
  std::shared_ptr<ProcessLock> lock;
};

// What this session's bodies are compiled and verified for. All values are final after open().
struct Geometry {
  uint32_t session = 0;
  uint32_t slot_address = 0;        // A: gs displacement of SlotControl.
  uint32_t window_address = 0;      // gs displacement of byte 0 of the session's region.
  uint32_t generation_address = 0;  // Absolute address of SessionEntry::generation.
  uint32_t spent_address = 0;       // Absolute address of the session's TargetPage::spent.
};

// What the stub around one body must do.
struct BodyShape {
  uint32_t size_bytes = 0;
  abi::RegisterSet clobbers;
  bool guarded = false;
};

// Windows of one module. Borrows; must live until lay_out returns.
struct ModuleRequest {
  const code::Plan* plan = nullptr;
  uint64_t load_bias = 0;             // Load time minus link time.
  std::span<const BodyShape> bodies;  // One per plan->points.
  // Where the planned file's code is mapped: what is there at the installation must be the same.
  // Empty = whatever is there.
  std::span<const target::Mapping> text = {};
  // Of functions that run on copies, which are written already (write_copies()): one per point, or
  // none at all. A point that is refused leads its copy to the original.
  std::span<const CopyWay> copies = {};
};

// Where one body will run.
struct BodyPlace {
  uint64_t address = 0;
  // Number of an accessor -> address of this session's entry near the body; for relocation and
  // policy. abi::Accessor; in a session of D also MachineAccessor and MachineProcessAccessor.
  std::span<const uint64_t> accessor_entries;
};

struct PointRefusal {
  uint32_t module = 0;  // Index in the requests.
  uint32_t point = 0;   // Index in plan->points.
  code::RefusalReason reason = code::RefusalReason::ForeignPatch;
};

// Addresses of the target.
struct CodeSpan {
  uint64_t begin = 0;
  uint64_t end = 0;  // Behind the last.
};

// How often an attachment has stopped its process until now, and for how long.
struct Stops {
  uint64_t count = 0;
  std::chrono::nanoseconds all{0};
  std::chrono::nanoseconds longest{0};
};

// Trampolines at their addresses, without bodies. Made by lay_out, consumed by install.
class Layout {
 public:
  Layout(Layout&&) noexcept;
  Layout& operator=(Layout&&) noexcept;
  ~Layout();

  // The place of point `point` of module `module`; none when it was refused.
  [[nodiscard]] std::optional<BodyPlace> place(uint32_t module, uint32_t point) const;
  // What runs for the probes of its window alone: stubs, bodies and the jump back, without the
  // displaced instructions, which are the program's own.
  [[nodiscard]] std::vector<CodeSpan> probe_code(uint32_t module, uint32_t point) const;
  [[nodiscard]] const std::vector<PointRefusal>& refusals() const;

  struct State;  // Opaque.

 private:
  friend class Attachment;
  explicit Layout(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One body and the point it belongs to.
struct Body {
  uint32_t module = 0;
  uint32_t point = 0;
  verify::VerifiedCode code;  // For the place that the layout gave.
};

struct InstallReport {
  uint32_t windows = 0;  // Installed.
  uint32_t points = 0;
  std::vector<PointRefusal> refusals;  // Those of the layout, and what the process refused.
  uint32_t threads = 0;
};

// A forked child that keeps jumps of the session, or memory, and why.
struct LeftChild {
  pid_t pid = 0;
  std::string reason;
  std::vector<TextChange> left = {};  // As DetachReport::left.
};

struct DetachReport {
  bool residue = false;  // A thread could not be moved out of the arena; `clew ps` lists it.
  std::string residue_reason;
  uint32_t foreign_patches = 0;  // Sites whose text was changed by somebody else, left alone.
  uint32_t vanished = 0;         // Sites whose module is gone.
  // What the last comparison of the text with its files found: jumps that no journal knew of, and
  // that are gone now;
  uint32_t repaired = 0;
  // what is not the file's where sessions have been, and stays;
  std::vector<TextChange> left = {};
  // traps and code of others, when all sessions are gone. Only clean_up() says.
  std::vector<TextChange> strangers = {};
  std::vector<LeftChild> children = {};  // What forked children have, wherever they are now.
};

enum class TargetState : uint8_t {
  Running,
  Exited,   // Or killed, or crashed: state is still readable through arena().
  Execed,   // Runs another program now: no probe is left in it.
  Removed,  // Somebody else has taken the probes out (clean_up with `force`).
};

enum class Event : uint8_t {
  Nothing,         // The time is over.
  TargetGone,      // state() says how.
  ModulesChanged,  // The loader waits: install what is wanted, then call modules_done().
};

// The shared memory, as the tracer sees it. Valid while the Attachment lives, also after the target
// died. The files are sealed against shrinking.
struct ArenaView {
  abi::ArenaHeader* header = nullptr;
  abi::TargetPage* target = nullptr;
  uint8_t* slots = nullptr;  // header->slot_count times header->slot_stride bytes.
  uint32_t slot_count = 0;
  uint64_t slot_stride_bytes = 0;
  int memory_file = -1;  // Of the slots; borrowed.
  uint64_t slots_file_offset = 0;
};

// Memory of the tracer that the target is to have, too.
struct SharedPart {
  int descriptor = -1;        // Borrowed; may be mapped MAP_SHARED from offset 0 on.
  uint64_t size_bytes = 0;    // Whole pages.
  bool is_writable = false;   // For the process; a child that it forks later does not have it,
  bool is_inherited = false;  // but for this.
  bool is_low = false;        // Below 2 GiB.
};
inline constexpr size_t kSharedPartsAtOnceMax = 16;

// Where copies of functions go (copy/module_copy.h), and what code there needs to know.
struct CopyRoom {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t claim =
      0;  // The runtime's, as stubs call it: r10 and the flags are free; answers in ZF.
  bool keeps_self_pointer = false;  // fs:0 of each thread; else rdfsbase, where that is allowed:
  bool has_base_instructions = false;
};

class Attachment {
 public:
  // Errors: NotFound for a pid that is not there; Refused with the reason in the user's words and a
  // stable name in brackets (gs-in-use, 32-bit, already-traced, no-permission, seccomp,
  // no-near-memory, no-low-memory, shared-descriptors, shared-tls, shadow-stack,
  // fsgsbase); Limit; Io.
  static Expected<Attachment> open(pid_t pid, const OpenOptions& options);

  Attachment(Attachment&&) noexcept;
  Attachment& operator=(Attachment&&) noexcept;
  ~Attachment();

  [[nodiscard]] const Geometry& geometry() const;
  // False when reading the time stamp counter is a signal in the process (PR_SET_TSC).
  [[nodiscard]] bool time_is_readable() const;
  // The same of rdtscp, which tells the CPU's number, and which old processors lack.
  [[nodiscard]] bool cpu_is_readable() const;
  // False when it is not known, without a system call, which thread runs a probe: then a slot can
  // be taken for its dead owner's.
  [[nodiscard]] bool knows_threads() const;
  // What this session's contexts (abi/region.h) know is believed no more; or never again.
  void lose_contexts(bool for_good);
  // False when threads that come later, in which nobody may set a gs base, are missed (no_slot).
  [[nodiscard]] bool serves_later_threads() const;
  // Threads of other processes on the same memory, and with a thread pointer of the target's own:
  // they run the probes' jumps, but are not counted (missed_no_slot). As they were at open().
  [[nodiscard]] const std::vector<pid_t>& barred() const;
  [[nodiscard]] ArenaView arena() const;
  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] const Stops& stops() const;
  // The runtime that probes call, in each extent of code.
  [[nodiscard]] std::vector<CodeSpan> runtime_areas() const;
  // Readable when the target is gone; for poll(2).
  [[nodiscard]] int pid_descriptor() const;

  // Keeps all other sessions from changing the process. Each step does so by itself; what is
  // planned for windows that others may take is planned and installed under one. Must not outlive
  // the attachment.
  Expected<ProcessLock::Hold> hold();
  // None when another session is at it: for a tracer that reads what the process has counted
  // meanwhile, and tries again.
  Expected<std::optional<ProcessLock::Hold>> try_hold();

  // Whether functions may run on copies with this session's probes: no other session is there, and
  // each thread can be given a slot. Asked under a hold, which lasts until they are installed.
  [[nodiscard]] bool may_run_on_copies() const;

  // Windows of all sessions in the module that has this bias now: plan_windows' `installed`.
  [[nodiscard]] std::vector<code::Window> installed(uint64_t load_bias) const;
  // The biases of modules where this session's jumps are gone, and the file's bytes are back: each
  // was closed, and opened again in the same place.
  [[nodiscard]] std::vector<uint64_t> reloaded() const;

  // The session is one of D, and its MachineProcess (abi/machine/process.h) is at this address of
  // the target: bodies may call the D accessors. Before the first lay_out.
  void use_d(uint64_t process);

  // The process, or a child that is followed, may have mapped what probes must not read by loads
  // (inline/reading_way.h). Looks once in a second at most.
  void look_at_mappings();

  // Probes walk stacks by these tables (abi/machine/unwind.h), which the target has at this
  // address, with room for so many rows.
  void use_unwind_tables(uint64_t tables, uint64_t rows);

  // From now on the loader waits for us when modules come and go, as OpenOptions::follow_modules
  // has it from the start. Refused when there is no room for that.
  Expected<void> follow_modules();

  Expected<Layout> lay_out(std::span<const ModuleRequest> modules);
  // Every placed point needs its body, except those in windows that the caller gives up: a window
  // with a missing body is not installed. May be called again later, for other windows.
  Expected<InstallReport> install(Layout&& layout, std::span<const Body> bodies);

  // Maps all of them in the target until detach(), and says where, in their order. Descriptors
  // reach the target by a socket and are closed again. After an error nothing is sure but that
  // detach() removes what there is. Errors: Refused when there is no room for it; Io; Limit.
  Expected<std::vector<uint64_t>> share(std::span<const SharedPart> parts);

  // Whether functions of the process run on copies, or may return into some.
  [[nodiscard]] bool has_copies() const;
  // Room that a session before has taken. Errors: Refused when there is no code so.
  [[nodiscard]] Expected<CopyRoom> room_at(uint64_t address, uint64_t size_bytes) const;
  // Room for code near [low, high) of the target, whose first address is `residue` modulo 64.
  Expected<CopyRoom> take_copy_room(uint64_t low, uint64_t high, uint64_t size_bytes,
                                    uint64_t residue);
  // Puts code there that nobody comes to yet. Errors: Limit.
  Expected<void> write_copies(const CopyRoom& room, std::span<const uint8_t> bytes);
  // Makes windows of originals lead to what was written. Copies stay as long as the process lives,
  // as return addresses lead there: sessions that come later are refused. Errors: Refused, with
  // nothing changed, when a window is not as the file has it, or another session has come.
  enum class Leads : uint8_t { ToCopies, ToAnswers };  // Of unwinders, see inline/answers.h.
  // Of a window that leads there already.
  void leads_to_answers(code::LedWindow window);
  Expected<void> lead_to_copies(std::vector<code::LedWindow> windows, Leads leads);
  // What a thread without a slot finds at gs:[displacement].
  [[nodiscard]] Expected<void> set_default_slot(uint32_t displacement, uint64_t value) const;

  // Adds 1 to each of these counters of 16 bits, which say that somebody listens to a static probe;
  // detach() takes it back. Addresses in the target.
  Expected<void> raise(std::span<const uint64_t> semaphores);

  // Takes out the bodies that begin at these addresses, as place() gave them. A site whose bodies
  // of this session are all gone has the text that it would have without them; where others are
  // left, the bodies are jumped over. Those that cannot be taken out so stay. Errors: Io when
  // threads do not stop; nothing is changed then.
  Expected<DetachReport> disarm(std::span<const uint64_t> bodies);

  // From now on the caller traces it: OpenOptions::is_held.
  void set_held();
  // Whether another process with these mappings has the arena: a forked child, say.
  [[nodiscard]] bool is_in(std::span<const target::Mapping> maps) const;
  // Forked by it, with its memory, and still there.
  [[nodiscard]] std::vector<pid_t> children() const;
  // The text of the process, or of a child that has its memory, is the file's again. What jumps led
  // to stays: threads run on in copies until they return from them.
  struct Restoring {
    pid_t process = 0;
    bool is_held = false;        // As OpenOptions says, of this process.
    bool keeps_answers = false;  // Exceptions may go through copies yet.
  };
  // Errors: those of a stop; nothing is changed then.
  Expected<void> restore_entries(const Restoring& wanted);
  // In place of detach(), of who has installed copies: the process, and its children, run on with
  // what they have. Nothing of them is looked at.
  void leave_copies();

  [[nodiscard]] TargetState state() const;
  Event wait(std::chrono::milliseconds timeout);
  // Whether a loader still waits for the answer to what wait() has told last. What it has loaded
  // has not run then.
  [[nodiscard]] bool loader_waits() const;
  // Lets a loader that waits go on. False when it did not wait until now: functions of the new
  // modules may have run before they were armed.
  bool modules_done();

  // Idempotent. Errors: Io when threads do not stop; the session is then still there.
  Expected<DetachReport> detach();

  struct State;  // Opaque.

 private:
  explicit Attachment(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// --- before a session --------------------------------------------------------------------------

// Whether the process may use wrgsbase and its like (its AT_HWCAP2). False for all when the tracer
// has CLEW_NO_FSGSBASE=1 in its environment. Without them a thread takes its slot by a system call.
bool has_base_instructions(pid_t pid);

// All threads stopped once, looked at, and let go: what open() would do first.
struct TrialStop {
  uint32_t threads = 0;
  std::chrono::nanoseconds stood_still{0};
  bool keeps_self_pointer = false;  // fs:0 of each thread: the C library's own.
  abi::SegmentBases bases = abi::SegmentBases::Instructions;
};

// Errors: those of open() that do not come from making an arena.
Expected<TrialStop> try_stop(pid_t pid);
// What can be said without a stop.
Expected<void> check_can_open(pid_t pid);

// --- processes that hold an arena ---------------------------------------------------------------

struct SessionInfo {
  uint32_t session = 0;
  pid_t tracer = 0;
  bool tracer_alive = false;
};

struct ArenaInfo {
  pid_t pid = 0;
  std::vector<SessionInfo> sessions;
  // Points of all sessions, as each counted them when it was armed; without an arena, jumps that
  // are left in the text.
  uint32_t sites = 0;
  bool residue = false;  // No live session: clean_up() removes it.
};

// None when there is no arena, and no jump that a session left in the text.
std::optional<ArenaInfo> look_at(pid_t pid);
// All processes that we may look at.
std::vector<ArenaInfo> ps();

// Text that sessions have changed in a process: nobody may write a breakpoint there.
struct PatchedText {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
};
std::vector<PatchedText> patched_text(pid_t pid);

// Removes all sessions whose tracer is dead, and the arena when no session is left. With `force`
// also live ones (their tracers notice). Jumps that no arena knows of go, too.
Expected<DetachReport> clean_up(pid_t pid, bool force, const LockWait& wait = {});

// --- commands that Clew starts ------------------------------------------------------------------

// How far a started command has come when it is handed over.
enum class LaunchPoint : uint8_t {
  Exec,    // At its first instruction, which is the loader's: no library is mapped.
  Loaded,  // After its libraries are mapped and before any constructor of them runs (static
           // programs: at the entry point).
  Main,    // At the first instruction of main().
};

struct LaunchOptions {
  std::vector<std::string> command;
  LaunchPoint point = LaunchPoint::Loaded;
  // What differs from our environment, in order: NAME=VALUE, or NAME for one that goes.
  std::vector<std::string> environment = {};
  std::chrono::milliseconds timeout{30'000};  // Until the loader is done, on a busy machine too.
  // Where the status of waitpid(2) goes when it ends before it begins. When it cannot be executed,
  // that is what env(1) would end with: 127 if it, or what it is run by, is not there, else 126.
  std::optional<int>* failed_with = nullptr;
};

// A started command, stopped. open(pid) works on it; resume() lets it run.
class Launched {
 public:
  static Expected<Launched> start(const LaunchOptions& options);
  // Stopped before its exec, which belongs to what is traced: for sources in the kernel.
  static Expected<Launched> start_before_exec(const LaunchOptions& options);
  Launched(Launched&&) noexcept;
  Launched& operator=(Launched&&) noexcept;
  ~Launched();  // Kills the command when it was never resumed.

  [[nodiscard]] pid_t pid() const { return pid_; }
  // In place of resume(), for a tracer that seizes the command first: what happens to us is none of
  // its business any more; then it goes on.
  Expected<void> set_free();
  Expected<void> go_on();
  // NotFound also when a command that was started before its exec cannot be executed.
  Expected<void> resume();
  // The status of waitpid(2); the command is our child.
  Expected<int> wait_for_exit();
  // The same, when it has ended already or ends in that time.
  [[nodiscard]] std::optional<int> exit_status(std::chrono::milliseconds timeout) const;

 private:
  explicit Launched(pid_t pid) : pid_(pid) {}
  Expected<void> resume_before_exec();
  pid_t pid_ = -1;
  bool resumed_ = false;
  FileDescriptor exec_error_;  // Where the child tells that its exec failed; of start_before_exec,
  std::string command_;        // as it was named, also.
};

}  // namespace clew::inline_
