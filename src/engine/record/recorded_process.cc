// SPDX-License-Identifier: Apache-2.0
#include "engine/record/recorded_process.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include "abi/arena.h"
#include "abi/region.h"
#include "abi/slot.h"
#include "base/clock_ns.h"
#include "base/log.h"
#include "engine/own_unwinder.h"
#include "engine/record/adopting.h"
#include "engine/record/thread_status.h"

namespace clew::engine {

using recorder::file_of;

namespace {

constexpr uint32_t kRegionSizeLog2 = 12;
// Until we come to hold it: what it has loaded is analysed afterwards. When we are killed, it waits
// so long once.
constexpr std::chrono::milliseconds kLoaderTimeout{1000};
constexpr uint32_t kCursorOffset = abi::kFrameEnd;  // In the session's region.

// The first slot from this one on that has a page: who looks at all makes them.
std::optional<uint32_t> next_touched(const inline_::ArenaView& arena, uint32_t slot) {
  if (slot >= arena.slot_count) return std::nullopt;
  const uint64_t offset = arena.slots_file_offset + slot * arena.slot_stride_bytes;
  const off_t data = lseek(arena.memory_file, static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0) return std::nullopt;
  const uint64_t found =
      (static_cast<uint64_t>(data) - arena.slots_file_offset) / arena.slot_stride_bytes;
  return found < arena.slot_count ? std::optional(static_cast<uint32_t>(found)) : std::nullopt;
}

// What stands between the copy and the entries: how unwinders go through it.
struct Places {
  uint64_t unwind = 0;
  uint64_t entries = 0;
};

Places places_behind(const recorder::Installable& module) {
  const uint64_t unwind = module.unwind().address - module.copy().address;
  return {unwind, (unwind + module.unwind().bytes.size() + 63) / 64 * 64};
}

bool is_same(const target::ProcessModule& one, const target::ProcessModule& other) {
  return one.path == other.path && one.load_bias == other.load_bias &&
         one.build_id == other.build_id && one.inode == other.inode;
}

// What is read of its file is kept.
bool unwinds_itself(ModuleFiles& files, const target::ProcessModule& module) {
  const auto file = files.read(module);
  return file && brings_unwinder(module, (*file)->names);
}

}  // namespace

bool RecordedProcess::Installed::is_mapped(const Modules& modules) const {
  return std::any_of(modules.begin(), modules.end(), [&](const target::ProcessModule& one) {
    return one.path == described.path && one.load_bias == described.load_bias;
  });
}

Expected<std::unique_ptr<RecordedProcess>> RecordedProcess::open(Begun begun, ModuleFiles& files,
                                                                 Notices& notices) {
  auto process = std::make_unique<RecordedProcess>(Key(), std::move(begun.command), files);
  const std::vector<Planned> planned = CLEW_TRY(process->plan(begun.pid));
  if (!planned.empty()) CLEW_TRY(process->attach(begun));
  for (const Planned& one : planned) {
    if (begun.is_over && begun.is_over()) break;
    notices.progress(fmt::format("preparing {}", file_of(one.module.path)));
    Expected<void> recorded = process->record_module(one);
    if (recorded) continue;
    const bool is_last_straw = one.module.is_executable && process->installed_.empty();
    if (is_last_straw) return tl::unexpected(std::move(recorded.error()));
    process->left_.push_back({one.module.path, std::move(recorded.error())});
  }
  const bool is_followed = begun.is_running || process->installed_.empty();
  if (process->opens_libraries_ && !is_followed) process->follow_loader();
  notices.progress("");
  if (process->installed_.empty()) process.reset();
  return process;
}

// What can be said before anything is in the process.
Expected<std::vector<RecordedProcess::Planned>> RecordedProcess::plan(pid_t pid) {
  std::vector<Planned> all;
  modules_ = CLEW_TRY(target::read_modules(pid));
  for (const target::ProcessModule& module : modules_) {
    Expected<std::optional<Planned>> planned = plan(module);
    if (!planned && module.is_executable) return tl::unexpected(std::move(planned.error()));
    if (!planned) left_.push_back({module.path, std::move(planned.error())});
    if (planned && *planned) all.push_back(std::move(**planned));
  }
  return all;
}

Expected<std::optional<RecordedProcess::Planned>> RecordedProcess::plan(
    const target::ProcessModule& module) {
  using Nothing = std::optional<Planned>;
  const auto file = files_.read(module);
  if (!file) {
    known_.add_unread();
    return module.problem.empty() ? Expected<Nothing>(tl::unexpected(file.error())) : Nothing();
  }
  known_.add((*file)->names, (*file)->is_left_out);
  if ((*file)->opens_libraries && !(*file)->is_left_out) opens_libraries_ = true;
  if ((*file)->is_left_out || !module.problem.empty()) return Nothing();
  if (files_.front_end() == recorder::FrontEnd::Guards && !(*file)->has_guards) return Nothing();
  return Nothing(Planned{module, *file});
}

Expected<void> RecordedProcess::attach(const Begun& begun) {
  inline_::OpenOptions options;
  options.region.size_log2 = kRegionSizeLog2;
  options.fork_policy = abi::ForkPolicy::Follow;
  options.is_held = begun.is_held;
  options.is_alone = begun.is_running;
  options.adopts_copies = begun.is_running;
  options.loader_timeout = kLoaderTimeout;
  if (begun.is_running) CLEW_TRY(clean_up_after_recorder(begun.pid));
  attachment_.emplace(CLEW_TRY(inline_::Attachment::open(begun.pid, options)));
  is_held_ = begun.is_held;
  if (attachment_->time_is_readable()) began_ = read_clocks();
  CLEW_TRY(attachment_->has_copies() ? adopt_lobes() : share_lobes());
  // Threads that have come meanwhile get slots by that, and cursors before the first entry.
  if (begun.is_running && opens_libraries_) follow_loader();
  give_cursors();
  CLEW_TRY(reserve_nobodys_slot());
  // By guards there are no copies on the stacks.
  if (files_.front_end() == recorder::FrontEnd::Guards) return {};
  if (!answers_) answers_ = CLEW_TRY(inline_::Answers::install(*attachment_, modules_));
  for (const target::ProcessModule& module : modules_)
    hear(module, modules_);
  return {};
}

// An unwinder that cannot be answered ends at the first frame in a copy: no more code that throws
// gets copies then. What has answers keeps them.
void RecordedProcess::hear(const target::ProcessModule& module, const Modules& modules) {
  if (!answers_ || !unwinds_itself(files_, module)) return;
  const Expected<void> heard = answers_->hear(*attachment_, modules, extent_of(module));
  if (heard) return;
  log_step(attachment_->pid(), "{} is not answered: {}", module.path, heard.error().message);
  answers_.reset();
}

Expected<void> RecordedProcess::share_lobes() {
  lobes_.emplace(CLEW_TRY(LobeFile::create(attachment_->arena().slot_count)));
  const inline_::SharedPart part = {.descriptor = lobes_->descriptor(),
                                    .size_bytes = lobes_->size_bytes(),
                                    .is_writable = true,
                                    .is_inherited = true};
  lobes_->place(CLEW_TRY(attachment_->share(std::span(&part, 1))).front());
  return {};
}

RecordedProcess::~RecordedProcess() {
  if (!attachment_) return;
  if (!attachment_->has_copies()) {
    (void)attachment_->restore_entries({.process = pid(), .is_held = is_held_});
  } else {
    attachment_->leave_copies();
  }
}

// Threads claim their slots, and get cursors then; but for those that have slots from the
// attachment (without FSGSBASE).
void RecordedProcess::give_cursors() const {
  const inline_::ArenaView arena = attachment_->arena();
  for (auto slot = next_touched(arena, 0); slot; slot = next_touched(arena, *slot + 1)) {
    abi::SlotControl control{};
    std::memcpy(&control, arena.slots + *slot * arena.slot_stride_bytes, sizeof(control));
    uint64_t cursor = 0;
    std::memcpy(&cursor, cursor_place(*slot), sizeof(cursor));
    if (control.owner == 0 || lobes_->has(*slot, cursor)) continue;
    set_cursor(*slot, lobes_->start_of(*slot));
  }
}

// The last one, with a lobe that nobody reads. No thread takes a slot that is being freed. A thread
// that has none, and gets into a copy by a coroutine of another one, writes there as well.
Expected<void> RecordedProcess::reserve_nobodys_slot() const {
  const inline_::ArenaView arena = attachment_->arena();
  const uint32_t slot = arena.slot_count - 1;
  auto* const control =
      reinterpret_cast<abi::SlotControl*>(arena.slots + slot * arena.slot_stride_bytes);
  __atomic_store_n(&control->tid, abi::kTidReserved, __ATOMIC_RELEASE);
  control->index = slot;
  const uint64_t cursor = lobes_->start_of(slot);
  set_cursor(slot, cursor);
  return attachment_->set_default_slot(attachment_->geometry().window_address + kCursorOffset,
                                       cursor);
}

std::optional<uint32_t> RecordedProcess::slot_at(uint64_t gs_base) const {
  const inline_::ArenaView arena = attachment_->arena();
  const uint64_t address = gs_base + attachment_->geometry().slot_address;
  const uint64_t slot = (address - arena.header->slots_address) / arena.slot_stride_bytes;
  return slot < arena.slot_count ? std::optional(static_cast<uint32_t>(slot)) : std::nullopt;
}

// One that shares its parent's memory (vfork) goes on as its parent.
void RecordedProcess::set_aside(pid_t child) {
  forked_ = read_clocks().ticks;
  if (runs_on_its_parents_memory(child)) return;
  user_regs_struct registers{};
  if (ptrace(PTRACE_GETREGS, child, nullptr, &registers) != 0 || !slot_at(registers.gs_base))
    return;
  const inline_::ArenaView arena = attachment_->arena();
  const uint64_t nobodys = arena.header->slots_address +
                           (arena.slot_count - 1) * arena.slot_stride_bytes -
                           attachment_->geometry().slot_address;
  (void)ptrace(PTRACE_POKEUSER, child, offsetof(user_regs_struct, gs_base), nobodys);
}

uint8_t* RecordedProcess::cursor_place(uint32_t slot) const {
  const inline_::ArenaView arena = attachment_->arena();
  const inline_::Geometry& geometry = attachment_->geometry();
  return arena.slots + slot * arena.slot_stride_bytes +
         (geometry.window_address - geometry.slot_address) + kCursorOffset;
}

void RecordedProcess::set_cursor(uint32_t slot, uint64_t cursor) const {
  std::memcpy(cursor_place(slot), &cursor, sizeof(cursor));
}

std::vector<IdRange> RecordedProcess::taken_ids() const {
  std::vector<IdRange> taken;
  taken.reserve(installed_.size());
  for (const Installed& one : installed_)
    taken.push_back({one.described.recipe.first_id, one.described.id_count});
  for (const recorder::SnapModule& one : before_)
    taken.push_back({one.recipe.first_id, one.id_count});
  return taken;
}

Expected<void> RecordedProcess::record_module(const Planned& planned) {
  const target::ProcessModule& module = planned.module;
  const bool by_guards = files_.front_end() == recorder::FrontEnd::Guards;
  if (!by_guards && !answers_ && CLEW_TRY(ModuleFiles::unwinds(module, *planned.file))) {
    return fail(ErrorCode::Refused,
                fmt::format("exceptions go through {}, and cannot go through copies of its "
                            "functions with this unwinder or C library [unwinding]",
                            file_of(module.path)));
  }
  if (CLEW_TRY(adopt(planned))) return {};
  auto shared =
      CLEW_TRY(files_.analyse(module, *planned.file,
                              {.cursor = attachment_->geometry().window_address + kCursorOffset,
                               .imports = known_.of(planned.file->names),
                               .stamped = stamped_of(planned.file->names),
                               .taken = taken_ids()}));
  const recorder::InstallableCounts& counts = shared->module().counts();
  if (counts.functions == 0) return {};
  const inline_::CopyRoom room = CLEW_TRY(take_room(module, shared->module()));
  recorder::SnapModule described = {.load_bias = module.load_bias,
                                    .copy_address = room.address,
                                    .code_size = shared->copy().code_size,
                                    .recipe = shared->recipe(),
                                    .id_count = counts.ids,
                                    .digest = shared->digest(),
                                    .build_id = module.build_id,
                                    .path = module.path};
  auto windows = CLEW_TRY(write(module, *shared, room, CopiesAre::New));
  write_manifest(&described);
  CLEW_TRY(attachment_->lead_to_copies(std::move(windows), inline_::Attachment::Leads::ToCopies));
  if (by_guards) {
    log_step(attachment_->pid(), "{}: recorded by its guards", module.path);
  } else {
    log_step(attachment_->pid(), "{}: {} of {} functions record ({} heads, {} bits)", module.path,
             counts.functions, counts.functions + counts.refused, counts.heads, counts.bits);
  }
  installed_.push_back({std::move(shared), std::move(described), room, planned});
  return {};
}

// None where reading the time is a signal.
std::vector<recorder::StampedImport> RecordedProcess::stamped_of(
    const target::LinkedNames& names) const {
  const bool has_time =
      attachment_->time_is_readable() && files_.front_end() == recorder::FrontEnd::Copies;
  return has_time ? recorder::stamped_imports(names) : std::vector<recorder::StampedImport>();
}

// A library that is opened again where it was has its copies still there.
Expected<bool> RecordedProcess::record_again(const Planned& planned) {
  const target::ProcessModule& module = planned.module;
  const auto again = std::find_if(installed_.begin(), installed_.end(), [&](const Installed& one) {
    return one.is_gone && one.described.path == module.path &&
           one.described.build_id == module.build_id && !module.build_id.empty() &&
           one.described.load_bias == module.load_bias && !one.module->is_broken();
  });
  if (again == installed_.end()) return false;
  auto windows = CLEW_TRY(write(module, *again->module, again->room, CopiesAre::New));
  CLEW_TRY(attachment_->lead_to_copies(std::move(windows), inline_::Attachment::Leads::ToCopies));
  again->is_gone = false;
  return true;
}

// Room for the entries is not known before they are written, and they are written for a place.
uint64_t room_bytes(const recorder::Installable& installable) {
  return places_behind(installable).entries + recorder::entry_bytes_max(installable.entries());
}

Expected<inline_::CopyRoom> RecordedProcess::take_room(const target::ProcessModule& module,
                                                       const recorder::Installable& installable) {
  const uint64_t low = module.executable_ranges.front().start;
  const uint64_t high = module.executable_ranges.back().end;
  return attachment_->take_copy_room(low, high, room_bytes(installable),
                                     installable.copy().address % 64);
}

// The windows that lead there.
Expected<std::vector<code::LedWindow>> RecordedProcess::write(const target::ProcessModule& module,
                                                              SharedModule& shared,
                                                              const inline_::CopyRoom& room,
                                                              CopiesAre copies) {
  const recorder::Installable& installable = shared.module();
  const Places behind = places_behind(installable);
  CLEW_TRY(shared.move_to(module.load_bias, room.address));
  recorder::Entries entries = CLEW_TRY(installable.write_entries(
      places_of(room), {module.load_bias, room.address, room.address + behind.entries}));
  CLEW_TRY(answer(module, installable));
  const auto put = [&](uint64_t offset, std::span<const uint8_t> bytes) -> Expected<void> {
    if (copies == CopiesAre::There) return check_same(room.address + offset, bytes);
    inline_::CopyRoom place = room;
    place.address += offset;
    place.size_bytes -= offset;
    return attachment_->write_copies(place, bytes);
  };
  CLEW_TRY(put(0, shared.copy().bytes));
  CLEW_TRY(put(behind.unwind, installable.unwind().bytes));
  CLEW_TRY(put(behind.entries, entries.bytes));
  return std::move(entries.windows);
}

Expected<void> RecordedProcess::answer(const target::ProcessModule& module,
                                       const recorder::Installable& installable) {
  const copy::UnwindBytes& unwind = installable.unwind();
  if (!answers_ || unwind.bytes.empty()) return {};
  const inline_::Answer answer = {.begin = installable.copy().address,
                                  .size_bytes = installable.copy().code_size,
                                  .original = module.executable_ranges.front().start,
                                  .header = unwind.address + unwind.header,
                                  .header_bytes = unwind.bytes.size() - unwind.header};
  // An unwinder of the module asks from its copy.
  if (answers_->hears(extent_of(module)))
    CLEW_TRY(answers_->hear_also(*attachment_, {answer.begin, answer.size_bytes}));
  return answers_->add(*attachment_, answer);
}

// Where it cannot be followed, later libraries are not recorded.
void RecordedProcess::follow_loader() {
  const Expected<void> followed = attachment_->follow_modules();
  follows_loader_ = followed.has_value();
  if (!followed) log_step(attachment_->pid(), "{}", followed.error().message);
}

bool RecordedProcess::is_loading() {
  if (!follows_loader_) return false;
  const uint32_t session = attachment_->geometry().session;
  const uint32_t requests =
      __atomic_load_n(&attachment_->arena().target->loader_requests[session], __ATOMIC_ACQUIRE);
  if (requests == seen_requests_) return false;
  seen_requests_ = requests;
  return attachment_->wait(std::chrono::milliseconds(0)) == inline_::Event::ModulesChanged;
}

// A loader that did not wait as long as it took us to come has begun to run what it has loaded.
void RecordedProcess::load(bool stands) {
  left_.clear();  // They were told.
  auto modules = target::read_modules(attachment_->pid());
  if (modules) {
    const bool is_late = !stands || !attachment_->loader_waits();
    for (Installed& one : installed_)
      one.is_gone = one.is_gone || !one.is_mapped(*modules);
    for (const target::ProcessModule& module : *modules) {
      if (!is_known(module)) hear(module, *modules);
    }
    for (const target::ProcessModule& module : *modules) {
      if (!is_known(module)) load_module(module, is_late);
    }
    modules_ = std::move(*modules);
  }
  (void)attachment_->modules_done();
}

void RecordedProcess::load_module(const target::ProcessModule& module, bool is_late) {
  constexpr size_t kInstalledMax = inline_::kAnswersMax;
  const auto planned = plan(module);
  if (planned && !*planned) return;
  Expected<void> recorded;
  if (!planned) {
    recorded = tl::unexpected(planned.error());
  } else if (is_late) {
    recorded = fail(ErrorCode::Limit, "its loader did not wait as long as its analysis took");
  } else if (const auto again = record_again(**planned); !again) {
    recorded = tl::unexpected(again.error());
  } else if (!*again && installed_.size() >= kInstalledMax) {
    recorded = fail(ErrorCode::Limit, fmt::format("its process has had {} recorded files, and no "
                                                  "more can be [modules]",
                                                  kInstalledMax));
  } else if (!*again) {
    recorded = record_module(**planned);
  }
  if (!recorded) left_.push_back({module.path, std::move(recorded.error())});
}

bool RecordedProcess::is_known(const target::ProcessModule& module) const {
  return std::any_of(modules_.begin(), modules_.end(),
                     [&](const target::ProcessModule& one) { return is_same(one, module); });
}

// What throws goes through the copies that are on the stacks.
Expected<void> RecordedProcess::leave(pid_t process, Stops* stops) {
  const bool keeps = keeps_answers();
  std::optional<Standstill> threads;
  if (stops != nullptr) threads.emplace(*stops, process, 0, Standstill::Calls::Stopped);
  if (threads && !threads->is_complete()) {
    return fail(ErrorCode::Io,
                fmt::format("not all threads of process {} can be stopped", process));
  }
  // The child runs on the same memory, and may stand in the bytes of an entry.
  if (threads && threads->has_vforked())
    return fail(ErrorCode::Io, fmt::format("a thread of process {} waits in vfork", process));
  return attachment_->restore_entries(
      {.process = process, .is_held = stops != nullptr, .keeps_answers = keeps});
}

bool RecordedProcess::keeps_answers() {
  if (files_.front_end() == recorder::FrontEnd::Guards) return false;
  if (!unwinds_) {
    unwinds_ = std::any_of(installed_.begin(), installed_.end(), [](const Installed& one) {
      return ModuleFiles::unwinds(one.planned.module, *one.planned.file).value_or(true);
    });
  }
  return *unwinds_;
}

recorder::HeadPlaces RecordedProcess::places_of(const inline_::CopyRoom& room) const {
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
          .has_time = attachment_->time_is_readable(),
          .lobes = lobes_->first_lobe(),
          .keeps_self_pointer = room.keeps_self_pointer,
          .has_base_instructions = room.has_base_instructions};
}

bool RecordedProcess::is_in(std::span<const target::Mapping> maps) const {
  return attachment_->is_in(maps);
}

abi::SlotControl& RecordedProcess::control_of(uint32_t slot) const {
  const inline_::ArenaView arena = attachment_->arena();
  return *reinterpret_cast<abi::SlotControl*>(arena.slots + slot * arena.slot_stride_bytes);
}

// Threads that end together are found by one look at all slots. In this order: abi/slot.h.
void RecordedProcess::ended(pid_t thread) {
  const auto tid = static_cast<uint32_t>(thread);
  if (free_slots(tid)) return;
  find_slots();
  (void)free_slots(tid);
}

bool RecordedProcess::free_slots(uint32_t tid) {
  bool any = false;
  const auto [first, last] = slots_.equal_range(tid);
  for (auto at = first; at != last; ++at) {
    abi::SlotControl& control = control_of(at->second);
    if (__atomic_load_n(&control.tid, __ATOMIC_ACQUIRE) != tid) continue;
    __atomic_store_n(&control.owner, uint64_t{0}, __ATOMIC_RELEASE);
    __atomic_store_n(&control.tid, 0U, __ATOMIC_RELEASE);
    any = true;
  }
  slots_.erase(first, last);
  return any;
}

void RecordedProcess::find_slots() {
  slots_.clear();
  for (auto slot = lobes_->next_used(0); slot; slot = lobes_->next_used(*slot + 1)) {
    const uint32_t tid = __atomic_load_n(&control_of(*slot).tid, __ATOMIC_ACQUIRE);
    if (tid != 0) slots_.emplace(tid, *slot);
  }
}

}  // namespace clew::engine
