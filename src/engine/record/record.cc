// SPDX-License-Identifier: Apache-2.0
#include "engine/record/record.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include "abi/arena.h"
#include "abi/region.h"
#include "abi/slot.h"
#include "base/clock_ns.h"
#include "base/log.h"
#include "copy/unwind.h"
#include "engine/record/known_imports.h"
#include "engine/record/lobe_file.h"
#include "engine/record/snap_requests.h"
#include "engine/record/standstill.h"
#include "engine/record/thread_status.h"
#include "engine/record/watch.h"
#include "inline/answers.h"
#include "inline/attachment.h"
#include "recorder/entries.h"
#include "recorder/recorded_module.h"
#include "recorder/save_snap.h"
#include "recorder/snap.h"
#include "target/frame_tables.h"
#include "target/process.h"

namespace clew::engine {

namespace {

constexpr uint32_t kRegionSizeLog2 = 12;
constexpr uint32_t kCursorOffset = abi::kFrameEnd;  // In the session's region.

// Modules that stay as they are, by the beginnings of their names: the loader calls itself in its
// own ways, and the C library looks at who calls it.
constexpr std::array<std::string_view, 5> kLeftOut = {"ld-linux", "libc.so", "libm.so", "libgcc_s",
                                                      "libstdc++.so"};

using recorder::file_of;

bool is_left_out(std::string_view path) {
  return std::any_of(kLeftOut.begin(), kLeftOut.end(),
                     [&](std::string_view prefix) { return file_of(path).starts_with(prefix); });
}

// Do exceptions go through its functions? An unwinder that gets no answers knows nothing of copies.
bool unwinds(const target::ModuleImage& image) {
  const auto fdes = image.fdes();
  const bool has_tables =
      std::any_of(fdes.begin(), fdes.end(), [](const target::Fde& fde) { return fde.has_lsda; });
  if (has_tables) return true;
  for (const char* name : {"__cxa_throw", "_Unwind_Resume", "_Unwind_RaiseException"}) {
    const auto slots = image.import_slots(name);
    if (slots && !slots->empty()) return true;
  }
  return false;
}

class Recorder final : public WatchListener {
 public:
  Recorder(const RecordRequest& request, Notices& notices) : request_(request), notices_(notices) {}

  Expected<int> run() {
    CLEW_TRY(recorder::check_snap_folder(request_.directory));
    inline_::Launched launched = CLEW_TRY(inline_::Launched::start({.command = request_.command}));
    CLEW_TRY(attach(launched.pid()));
    CLEW_TRY(record_modules(launched.pid()));
    CLEW_TRY(launched.set_free());
    Watch watch = CLEW_TRY(Watch::seize(launched.pid()));
    hear_requests();
    // The terminal's signals are meant for the command.
    (void)std::signal(SIGINT, SIG_IGN);
    (void)std::signal(SIGQUIT, SIG_IGN);
    CLEW_TRY(launched.go_on());
    return watch.run(*this);
  }

  void crashed(const Crash& crash, Standstill& threads) override {
    recorder::Snap snap = new_snap(crash.process);
    snap.reason.signal = crash.signal;
    snap.reason.code = crash.code;
    snap.reason.thread = crash.thread;
    snap.reason.address = crash.address;
    copy_threads(threads, snap);
    save(snap);
  }
  void left(pid_t process) override { tell_exec(process); }

  // Its slot is free for another thread, which goes on in its lobe. In this order: abi/slot.h.
  void ended(pid_t thread) override {
    const inline_::ArenaView arena = attachment_->arena();
    for (auto slot = lobes_->next_used(0); slot; slot = lobes_->next_used(*slot + 1)) {
      auto* const control =
          reinterpret_cast<abi::SlotControl*>(arena.slots + *slot * arena.slot_stride_bytes);
      if (__atomic_load_n(&control->tid, __ATOMIC_ACQUIRE) != static_cast<uint32_t>(thread))
        continue;
      __atomic_store_n(&control->owner, uint64_t{0}, __ATOMIC_RELEASE);
      __atomic_store_n(&control->tid, 0U, __ATOMIC_RELEASE);
    }
  }

  [[nodiscard]] int door() const override { return requests_ ? requests_->descriptor() : -1; }

  void knocked(Stops& stops) override {
    const auto request = requests_->next();
    if (!request) return;
    const ThreadStatus status = status_of(request->process);
    if (status.tracer != getpid() || status.has_ended()) {
      return SnapRequests::refuse(*request, SnapAnswer::NotWatched);
    }
    SnapRequests::answer(*request, recorder::snap_bytes(asked_snap(status.process, stops)));
  }

  // A handler begins with the cursor in memory, which is older than what r11 has.
  void caught(const WatchedThread& thread) override {
    const user_regs_struct& registers = thread.registers;
    const bool is_newer = std::any_of(
        installed_.begin(), installed_.end(),
        [&](const Installed& one) { return one.module->has_cursor_in_r11(registers.rip); });
    const inline_::ArenaView arena = attachment_->arena();
    const uint64_t slot_address = registers.gs_base + attachment_->geometry().slot_address;
    const uint64_t slot = (slot_address - arena.header->slots_address) / arena.slot_stride_bytes;
    if (!is_newer || slot >= arena.slot_count) return;
    const uint64_t lobe = lobes_->lobe_of(static_cast<uint32_t>(slot));
    if (registers.r11 - lobe >= abi::kLobeBytes) return;
    set_cursor(static_cast<uint32_t>(slot), registers.r11);
  }

 private:
  struct Installed {
    std::unique_ptr<recorder::RecordedModule> module;
    recorder::SnapModule described;
  };

  Expected<void> attach(pid_t pid) {
    inline_::OpenOptions options;
    options.region.size_log2 = kRegionSizeLog2;
    options.fork_policy = abi::ForkPolicy::Follow;
    attachment_.emplace(CLEW_TRY(inline_::Attachment::open(pid, options)));
    lobes_.emplace(CLEW_TRY(LobeFile::create(attachment_->arena().slot_count)));
    const inline_::SharedPart part = {.descriptor = lobes_->descriptor(),
                                      .size_bytes = lobes_->size_bytes(),
                                      .is_writable = true,
                                      .is_inherited = true};
    lobes_->place(CLEW_TRY(attachment_->share(std::span(&part, 1))).front());
    give_cursors();
    return {};
  }

  // Threads claim their slots, and get cursors then; but for those that have slots from the
  // attachment (without FSGSBASE).
  void give_cursors() {
    const inline_::ArenaView arena = attachment_->arena();
    for (uint32_t slot = 0; slot < arena.slot_count; ++slot) {
      uint8_t* const at = arena.slots + slot * arena.slot_stride_bytes;
      abi::SlotControl control{};
      std::memcpy(&control, at, sizeof(control));
      if (control.owner == 0) continue;
      set_cursor(slot, lobes_->lobe_of(slot) + abi::kLobeBytes - abi::kRecordBytes);
    }
  }

  [[nodiscard]] uint8_t* cursor_place(uint32_t slot) const {
    const inline_::ArenaView arena = attachment_->arena();
    const inline_::Geometry& geometry = attachment_->geometry();
    return arena.slots + slot * arena.slot_stride_bytes +
           (geometry.window_address - geometry.slot_address) + kCursorOffset;
  }

  void set_cursor(uint32_t slot, uint64_t cursor) const {
    std::memcpy(cursor_place(slot), &cursor, sizeof(cursor));
  }

  Expected<void> record_modules(pid_t pid) {
    const auto modules = CLEW_TRY(target::read_modules(pid));
    for (const target::ProcessModule& module : modules)
      known_.add(module, is_left_out(module.path));
    answers_ = CLEW_TRY(inline_::Answers::install(*attachment_, modules));
    for (const target::ProcessModule& module : modules) {
      if (is_left_out(module.path) || !module.problem.empty()) continue;
      notices_.progress(fmt::format("preparing {}", file_of(module.path)));
      Expected<void> recorded = record_module(module);
      if (recorded) continue;
      if (module.is_executable) return recorded;
      notices_.warning(
          fmt::format("{} is not recorded: {}", file_of(module.path), recorded.error().message));
    }
    notices_.progress("");
    if (installed_.empty()) {
      return fail(ErrorCode::Refused, "no function of the command can be recorded");
    }
    return {};
  }

  Expected<void> record_module(const target::ProcessModule& module) {
    const auto image = CLEW_TRY(target::ModuleImage::read(module.open_path));
    if (!answers_ && unwinds(image)) {
      return fail(ErrorCode::Refused,
                  fmt::format("exceptions go through {}, and cannot go through copies of its "
                              "functions with this C library [unwinding]",
                              file_of(module.path)));
    }
    const recorder::Recipe recipe = {
        .first_id = next_id_,
        .cursor = attachment_->geometry().window_address + kCursorOffset,
        .loops = request_.each_iteration ? recorder::Loops::Each : recorder::Loops::Once,
        .imports = CLEW_TRY(known_.of(image))};
    auto recorded = CLEW_TRY(recorder::RecordedModule::make(image, recipe));
    if (recorded->proof().proved.empty()) return {};
    CLEW_TRY(install(module, *recorded));
    next_id_ += recorded->tiling().dag_count;
    const copy::ModuleCopy& copy = recorded->copy().copy();
    recorder::SnapModule described = {.load_bias = module.load_bias,
                                      .copy_address = copy.address,
                                      .code_size = copy.code_size,
                                      .recipe = recipe,
                                      .id_count = recorded->tiling().dag_count,
                                      .digest = recorded->digest(),
                                      .build_id = module.build_id,
                                      .path = module.path};
    const copy::ModuleProof& proof = recorded->proof();
    log_step(attachment_->pid(), "{}: {} of {} functions record ({} heads, {} bits)", module.path,
             proof.proved.size(), proof.proved.size() + proof.refused.size(),
             recorded->probes().counts.heads, recorded->probes().counts.bits);
    installed_.push_back({std::move(recorded), std::move(described)});
    return {};
  }

  // Room for the entries is not known before they are written, and they are written for a place.
  Expected<void> install(const target::ProcessModule& module, recorder::RecordedModule& recorded) {
    constexpr uint64_t kEntryBytesMax = 320;
    copy::CheckedCopy& copy = recorded.copy();
    copy::UnwindBytes unwind = CLEW_TRY(unwinding_of(module, recorded));
    const uint64_t copied = unwind.address - copy.copy().address;
    const uint64_t in_front = (copied + unwind.bytes.size() + 63) / 64 * 64;
    const uint64_t size = in_front + 256 + kEntryBytesMax * copy.copy().functions.size();
    const uint64_t low = module.executable_ranges.front().start;
    const uint64_t high = module.executable_ranges.back().end;
    const inline_::CopyRoom room =
        CLEW_TRY(attachment_->take_copy_room(low, high, size, copy.copy().address % 64));
    const uint64_t shift = room.address - copy.copy().address;
    CLEW_TRY(copy.move_to(module.load_bias, shift));
    CLEW_TRY(unwind.move_to(module.load_bias, shift));
    const recorder::HeadPlaces places = places_of(room);
    const recorder::EntryProbes probes(
        {recorded.facts(), recorded.proof(), recorded.copied(), recorded.tiling()},
        recorded.probes(), recorded.recipe().first_id, recorded.recipe().cursor);
    const recorder::EntryProbe probe = [&](uint64_t function, uint64_t at) {
      return probes.bytes(function, at);
    };
    const recorder::Entries entries = CLEW_TRY(recorder::make_entries(
        recorded.facts(), copy.copy(), probe, places, {module.load_bias, room.address + in_front}));
    CLEW_TRY(answer(module, copy.copy(), unwind));
    std::vector<uint8_t> bytes = copy.copy().bytes;
    bytes.resize(copied);
    bytes.insert(bytes.end(), unwind.bytes.begin(), unwind.bytes.end());
    bytes.resize(in_front);
    bytes.insert(bytes.end(), entries.bytes.begin(), entries.bytes.end());
    return attachment_->install_copies(room, bytes, entries.patches);
  }

  static Expected<copy::UnwindBytes> unwinding_of(const target::ProcessModule& module,
                                                  recorder::RecordedModule& recorded) {
    const auto tables = CLEW_TRY(target::read_frame_tables(module.open_path));
    return copy::write_unwind(
        {.tables = tables,
         .insertions = recorded.probes().insertions,
         .copy = recorded.copy().copy(),
         .is_position_independent = recorded.facts().is_position_independent});
  }

  // Before the copies are led to.
  Expected<void> answer(const target::ProcessModule& module, const copy::ModuleCopy& copy,
                        const copy::UnwindBytes& unwind) {
    if (!answers_ || unwind.bytes.empty()) return {};
    return answers_->add(*attachment_, {.begin = copy.address,
                                        .size_bytes = copy.code_size,
                                        .original = module.executable_ranges.front().start,
                                        .header = unwind.address + unwind.header});
  }

  [[nodiscard]] recorder::HeadPlaces places_of(const inline_::CopyRoom& room) const {
    const inline_::Geometry& geometry = attachment_->geometry();
    const auto in_slot = [&](size_t offset) {
      return geometry.slot_address + static_cast<uint32_t>(offset);
    };
    return {.owner = in_slot(offsetof(abi::SlotControl, owner)),
            .index = in_slot(offsetof(abi::SlotControl, index)),
            .tid = in_slot(offsetof(abi::SlotControl, tid)),
            .cookie = in_slot(abi::kCookieOffset),
            .cursor = geometry.window_address + kCursorOffset,
            .claim = room.claim,
            .lobes = lobes_->first_lobe(),
            .keeps_self_pointer = room.keeps_self_pointer,
            .has_base_instructions = room.has_base_instructions};
  }

  void tell_exec(pid_t pid) {
    if (pid != attachment_->pid()) return;
    notices_.warning("the command runs another program now, which is not recorded");
  }

  // Without it there is no `clew snap`, and all else is as it is.
  void hear_requests() {
    auto requests = SnapRequests::open();
    if (!requests) return notices_.warning(requests.error().message);
    requests_.emplace(std::move(*requests));
  }

  [[nodiscard]] recorder::Snap new_snap(pid_t process) const {
    recorder::Snap snap;
    snap.reason.time_ns = static_cast<uint64_t>(clock_ns(CLOCK_REALTIME));
    snap.pid = process;
    snap.command = request_.command;
    add_modules(process, snap);
    return snap;
  }

  // The threads stand while they are copied, and for nothing else.
  [[nodiscard]] recorder::Snap asked_snap(pid_t process, Stops& stops) const {
    recorder::Snap snap = new_snap(process);
    const StepTime time;
    size_t stopped = 0;
    double stood_ms = 0;
    {
      Standstill threads(stops, process, 0);
      copy_threads(threads, snap);
      stopped = threads.stopped_count();
      stood_ms = time.ms();
    }
    log_step(process, "was asked for a snap: {} of {} threads ran, and stood for {:.1f} ms",
             stopped, snap.threads.size(), stood_ms);
    return snap;
  }

  // Once more, if one that waited has gone on meanwhile.
  void copy_threads(Standstill& threads, recorder::Snap& snap) const {
    constexpr unsigned kCopiesMax = 4;
    for (unsigned copies = 0; copies < kCopiesMax; ++copies) {
      snap.threads.clear();
      for (const WatchedThread& thread : threads.threads())
        snap.threads.push_back({thread.thread, recorder::kNoSlot, thread.registers});
      add_lobes(snap);
      if (!threads.has_moved()) return;
    }
  }

  // Those that are not recorded are named, too: a thread may have stopped in them.
  void add_modules(pid_t process, recorder::Snap& snap) const {
    for (const Installed& one : installed_)
      snap.modules.push_back(one.described);
    const auto modules = target::read_modules(process);
    if (!modules) return;
    for (const target::ProcessModule& module : *modules) {
      if (is_recorded(module) || !module.problem.empty()) continue;
      recorder::SnapModule described;
      described.load_bias = module.load_bias;
      described.build_id = module.build_id;
      described.path = module.path;
      snap.modules.push_back(std::move(described));
    }
  }

  [[nodiscard]] bool is_recorded(const target::ProcessModule& module) const {
    return std::any_of(installed_.begin(), installed_.end(), [&](const Installed& one) {
      return one.described.path == module.path && one.described.load_bias == module.load_bias;
    });
  }

  // Those of its threads; other processes have theirs in the same file.
  void add_lobes(recorder::Snap& snap) const {
    const inline_::ArenaView arena = attachment_->arena();
    snap.lobes.clear();
    for (auto used = lobes_->next_used(0); used; used = lobes_->next_used(*used + 1)) {
      const uint32_t slot = *used;
      abi::SlotControl control{};
      std::memcpy(&control, arena.slots + slot * arena.slot_stride_bytes, sizeof(control));
      const auto thread = static_cast<int32_t>(control.tid);
      const auto owner =
          std::find_if(snap.threads.begin(), snap.threads.end(),
                       [thread](const recorder::SnapThread& one) { return one.thread == thread; });
      if (owner == snap.threads.end()) continue;
      if (owner->slot == recorder::kNoSlot) owner->slot = slot;
      uint64_t cursor = 0;
      std::memcpy(&cursor, cursor_place(slot), sizeof(cursor));
      const std::span<const uint32_t> words = lobes_->words(slot);
      snap.lobes.push_back({slot, thread, cursor, lobes_->lobe_of(slot),
                            std::vector<uint32_t>(words.begin(), words.end())});
    }
  }

  void save(const recorder::Snap& snap) {
    const auto path = recorder::save_snap(request_.directory, snap);
    if (!path) return notices_.warning(fmt::format("no snap: {}", path.error().message));
    notices_.made(fmt::format("recorded: {} (clew show {})", *path, *path));
  }

  const RecordRequest& request_;
  Notices& notices_;
  KnownImports known_;
  std::optional<LobeFile> lobes_;
  std::optional<inline_::Attachment> attachment_;
  std::optional<inline_::Answers> answers_;  // Nothing when the C library has no such function.
  std::optional<SnapRequests> requests_;
  std::vector<Installed> installed_;
  uint32_t next_id_ = 1;
};

}  // namespace

Expected<int> record(const RecordRequest& request, Notices& notices) {
  return Recorder(request, notices).run();
}

}  // namespace clew::engine
