// SPDX-License-Identifier: Apache-2.0
// A session's life: open and look. Installing is in install.cc, leaving in leave.cc.
#include "inline/attachment.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include <cpuid.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "inline/arena_layout.h"
#include "inline/attachment_state.h"
#include "inline/brief_wait.h"
#include "inline/checks.h"
#include "inline/copy_way.h"
#include "inline/forked_children.h"
#include "inline/loader.h"
#include "inline/permission.h"
#include "inline/program_counters.h"
#include "inline/reading_way.h"
#include "inline/removal.h"
#include "inline/segment_bases.h"
#include "inline/session_place.h"
#include "inline/stopped_target.h"
#include "inline/stuck_thread.h"
#include "inline/vdso_load.h"
#include "ledger/site_rules.h"
#include "runtime/blob.h"

namespace clew::inline_ {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLockTimeout{10'000};
constexpr uint64_t kStrideMin = 1ULL << 20;
// For the sessions that come later: of address space there is enough, and nothing else is taken.
constexpr uint64_t kStrideRoomy = 1ULL << 25;
constexpr uint64_t kClusterSpan = 1ULL << 30;  // Modules that share one code extent.
constexpr std::chrono::milliseconds kWaitSlice{5};

// Whether the process may map, and the file may have, as much as it likes.
bool has_room(pid_t pid) {
  rlimit space = {};
  rlimit file = {};
  return prlimit(pid, RLIMIT_AS, nullptr, &space) == 0 && space.rlim_cur == RLIM_INFINITY &&
         getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur == RLIM_INFINITY;
}

uint64_t stride_for(pid_t pid, const abi::RegionLayout& layout) {
  uint64_t stride = has_room(pid) ? kStrideRoomy : kStrideMin;
  while (stride < 2 * region_size(layout) + abi::kSlotControlSizeBytes)
    stride *= 2;
  return stride;
}

// Extents near all modules that are mapped now, so that installing need not stop the target twice.
void add_extents(StoppedTarget& target, Arena& arena) {
  const auto maps = target::read_memory_map(target.pid());
  if (!maps) return;
  std::optional<CodeRange> cluster;
  const auto close_cluster = [&] {
    if (!cluster || arena.find_extent(*cluster, 1 << 20)) return;
    // A cluster without near memory is refused site by site, later.
    (void)arena.add_extent(target, *cluster, 0);
  };
  for (const target::Mapping& map : *maps) {
    const bool code = map.executable && map.inode != 0 && !map.shared;
    if (!code) continue;
    if (cluster && map.end - cluster->low > kClusterSpan) {
      close_cluster();
      cluster.reset();
    }
    cluster = CodeRange{.low = cluster ? cluster->low : map.start, .high = map.end};
  }
  close_cluster();
}

Error residue_error(pid_t pid, const DetachReport& report) {
  return {ErrorCode::Refused, fmt::format("process {} holds what an earlier session left, and it "
                                          "cannot be removed now: {} [residue]",
                                          pid, report.residue_reason)};
}

bool runs_on_copies(const Arena& arena) {
  const auto layers = arena.layers().first(std::min(arena.journal().layer_count, abi::kLayersMax));
  return std::any_of(layers.begin(), layers.end(), [](const abi::LayerRecord& layer) {
    return layer.in_use != 0 && layer.copy_jump != 0;
  });
}

Expected<Arena> create_arena(StoppedTarget& target, const OpenOptions& options) {
  ArenaOptions wanted;
  wanted.slot_stride = stride_for(target.pid(), options.region);
  wanted.fork_policy = options.fork_policy;
  wanted.traits = CLEW_TRY(check_threads(target, nullptr));
  const auto facts = target::read_facts(target.pid());
  wanted.traits.system_calls_allowed =
      facts && facts->seccomp == target::ProcessFacts::Seccomp::Off;
  wanted.traits.tid_offset = find_tid_offset(target);
  const bool unknown = wanted.traits.tid_offset == abi::kTidFromNobody;
  // A command that has not run yet has not said what it forbids itself.
  if (unknown && wanted.traits.system_calls_allowed && has_run(target)) {
    wanted.traits.tid_offset = abi::kTidFromKernel;
  }
  return Arena::create(target, wanted);
}

// The arena for a new session: made new, or shared with living sessions. None when another session
// came in while we were looking: try again.
Expected<std::optional<Arena>> get_arena(StoppedTarget& target, const OpenOptions& options,
                                         std::optional<Arena> seen) {
  const auto mapping = find_arena(CLEW_TRY(target::read_memory_map(target.pid())));
  if (!mapping) return std::optional(CLEW_TRY(create_arena(target, options)));
  if (!seen) return std::optional<Arena>();
  if ((seen->journal().copied_modules & kRecordersCopies) != 0) {
    if (options.adopts_copies) return adopt_arena(target, std::move(*seen));
    return fail(ErrorCode::Refused,
                fmt::format("process {} is recorded, or was: its functions run on copies, where "
                            "probes of others would not be seen [recorded]",
                            target.pid()));
  }
  if (live_sessions(*seen) != 0 && runs_on_copies(*seen)) {
    return fail(ErrorCode::Refused,
                fmt::format("functions of process {} run on copies for another session, where "
                            "probes of others would not be seen; end it first (clew ps), or start "
                            "it without --copies [copies]",
                            target.pid()));
  }
  if (options.is_alone && live_sessions(*seen) != 0) {
    return fail(ErrorCode::Refused, fmt::format("another session traces process {}; end it first "
                                                "(clew ps) [traced]",
                                                target.pid()));
  }
  if (dead_sessions(*seen) != 0) CLEW_TRY(target.finish_calls_of_dead_tracers());
  SiteJournal journal(*seen);
  const uint32_t live = live_sessions(*seen);
  Removal removal(*seen, journal, {.leaving = dead_sessions(*seen), .everything = live == 0});
  const auto report = CLEW_TRY(removal.run(target));
  if (!report.residue) removal.forget();
  // Who runs on a copy of a session that has ended may do so for as long as the process lives.
  const bool is_kept = report.residue && removal.keeps_copies_alone();
  if (is_kept) removal.forget_all();
  if (is_kept && live == 0) seen->header().fork_policy = options.fork_policy;
  if (live == 0 && !is_kept) {
    if (report.residue) return tl::unexpected(residue_error(target.pid(), report));
    return std::optional(CLEW_TRY(create_arena(target, options)));
  }
  for (uint32_t s = 0; s < abi::kSessionsMax; ++s) {
    if ((dead_sessions(*seen) >> s & 1) != 0) seen->header().sessions[s].state = 0;
  }
  CLEW_TRY(check_threads(target, &*seen));
  if (!seen->shared()) {
    return fail(ErrorCode::Refused, fmt::format("the session on process {} belongs to another user "
                                                "[no-permission]",
                                                target.pid()));
  }
  return seen;
}

Expected<std::optional<Arena>> join_if_there(pid_t pid) {
  const auto maps = target::read_memory_map(pid);
  if (!maps) {
    return no_permission(fmt::format("process {}", pid));
  }
  const auto mapping = find_arena(*maps);
  const bool unfinished = mapping && is_unfinished(pid, *mapping);
  if (unfinished || !forgotten_descriptors(pid).empty()) CLEW_TRY(remove_unfinished(pid));
  if (!mapping || unfinished) {
    CLEW_TRY(check_stray_jumps(pid));
    return std::optional<Arena>();
  }
  return std::optional(CLEW_TRY(Arena::join(pid, *mapping)));
}

// The links between the layers of a site are code that forked children share and may be executing.
Expected<void> check_children(const Arena& arena, pid_t pid) {
  if (live_sessions(arena) == 0 || children_with(arena, pid).empty()) return {};
  return fail(ErrorCode::Refused,
              fmt::format("process {} has forked children with the probes of another session; wait "
                          "for them or end it [forked-children]",
                          pid));
}

timespec to_timespec(std::chrono::nanoseconds time) {
  return {.tv_sec = static_cast<time_t>(time.count() / 1'000'000'000),
          .tv_nsec = time.count() % 1'000'000'000};
}

void futex_wake(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace

void answer_loader(Attachment::State& state) {
  const uint32_t mine = 1U << state.geometry.session;
  const uint32_t before =
      __atomic_fetch_or(&state.arena.target_page().loader_sessions, mine, __ATOMIC_ACQ_REL);
  if ((before & mine) == 0) state.loader_late = true;
  uint32_t* const answers = &state.arena.header().loader_answers[state.geometry.session];
  __atomic_store_n(answers, state.loader_seen, __ATOMIC_RELEASE);
  futex_wake(answers);
}

Expected<ArenaLock> ArenaLock::take(const Arena& arena) {
  if (arena.lock(kLockTimeout)) return ArenaLock(arena);
  return fail(ErrorCode::Io, fmt::format("process {} changes the same target since {} seconds",
                                         arena.header().lock_owner, kLockTimeout.count() / 1000));
}

Expected<StoppedTarget> stop_target(pid_t pid, std::chrono::milliseconds timeout) {
  constexpr std::chrono::microseconds kPause{1000};
  if (const auto stuck = find_stuck_thread(pid, timeout)) {
    return fail(ErrorCode::Io,
                fmt::format("thread {} of process {} sleeps in the kernel and cannot be stopped "
                            "(state D: a disk or server that does not answer, or vfork); nothing "
                            "was stopped",
                            *stuck, pid));
  }
  const Clock::time_point deadline = Clock::now() + timeout;
  while (true) {
    auto target = StoppedTarget::stop(pid, timeout);
    const bool traced =
        !target && target.error().message.find("[already-traced]") != std::string::npos;
    if (!traced || Clock::now() > deadline) return target;
    wait_briefly(kPause);
  }
}

Expected<StoppedTarget> stop_target(pid_t pid, const OpenOptions& options) {
  return options.is_held ? StoppedTarget::of_held(pid) : stop_target(pid, options.stop_timeout);
}

void log_stop(const StoppedTarget& target, std::string_view why) {
  const std::chrono::duration<double, std::milli> time = target.stood_still();
  log_step(target.pid(), "stopped {} threads to {} ({:.2f} ms)", target.threads_let_go(), why,
           time.count());
}

bool holds(pid_t pid, uint64_t address, std::span<const uint8_t> bytes) {
  std::array<uint8_t, abi::kPatchSizeMax> now{};
  CLEW_ASSERT(bytes.size() <= now.size());
  const auto there = std::span(now).first(bytes.size());
  return target::read_memory(pid, address, there) &&
         std::equal(bytes.begin(), bytes.end(), there.begin());
}

bool has_arena(pid_t pid, const Arena& arena) {
  uint64_t magic = 0;
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(&magic), sizeof magic);
  const auto read = target::read_memory(pid, arena.low_address() + abi::kHeaderOffset, bytes);
  return read.has_value() && magic == abi::kArenaMagic;
}

uint32_t dead_sessions(const Arena& arena) {
  uint32_t dead = 0;
  for (uint32_t s = 0; s < abi::kSessionsMax; ++s) {
    const abi::SessionEntry entry = arena.session(s);
    const bool alive = is_start_time(static_cast<pid_t>(entry.tracer_pid), entry.tracer_start_time);
    if (entry.state != 0 && !alive) dead |= 1U << s;
  }
  return dead;
}

uint32_t live_sessions(const Arena& arena) {
  uint32_t all = 0;
  for (uint32_t s = 0; s < abi::kSessionsMax; ++s) {
    if (arena.header().sessions[s].state != 0) all |= 1U << s;
  }
  return all & ~dead_sessions(arena);
}

namespace {

// Whether the program lets itself read the time stamp counter; where it does not, rdtsc is a signal
// (prctl(2), PR_SET_TSC). One thread is asked for all: threads inherit it.
bool may_read_time(StoppedTarget& target) {
  const Expected<uint64_t> place = target.scratch();
  if (!place) return true;
  const Expected<int64_t> asked =
      target.call({.number = SYS_prctl, .arguments = {PR_GET_TSC, *place}});
  std::array<uint8_t, 4> mode{};
  if (!asked || *asked != 0 || !target.read(*place, mode)) return true;
  return mode[0] != PR_TSC_SIGSEGV;
}

void log_opened(const Attachment::State& state, bool is_shared, const StoppedTarget& target) {
  log_stop(target, is_shared ? "join the arena that is there" : "map an arena");
  const Arena& arena = state.arena;
  log_step(state.pid, "has session {} at {:#x}: region at offset {} of each slot",
           state.geometry.session, state.geometry.slot_address,
           state.geometry.window_address - state.geometry.slot_address);
  log_detail(state.pid, "arena: low block at {:#x}, {} slots of {} KiB in {}", arena.low_address(),
             arena.shape().slot_count, arena.shape().slot_stride >> 10,
             arena.shared() ? "shared memory" : "memory of its own");
  const ArenaExtents extents = arena.extents();
  for (uint32_t i = 0; i < extents.count; ++i) {
    const abi::ExtentRecord& extent = extents.records[i];
    log_detail(state.pid, "arena: code extent at {:#x}, {} KiB", extent.address,
               extent.size_bytes >> 10);
  }
}

bool has_rdtscp() {
  constexpr unsigned kFunction = 0x80000001;
  constexpr unsigned kRdtscp = 1U << 27;  // EDX
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(kFunction, &a, &b, &c, &d) != 0 && (d & kRdtscp) != 0;
}

}  // namespace

Expected<Attachment> Attachment::open(pid_t pid, const OpenOptions& options) {
  constexpr unsigned kTriesMax = 3;
  CLEW_TRY(check_process(pid));
  CLEW_TRY(ledger::check_program(pid));
  if (options.region.size_log2 < 10 || options.region.size_log2 > kRegionSizeLog2Max) {
    return fail(ErrorCode::Limit, fmt::format("a region of 2^{} bytes is not between 2^10 and 2^{}",
                                              options.region.size_log2, kRegionSizeLog2Max));
  }
  const auto process = options.lock != nullptr ? options.lock : std::make_shared<ProcessLock>(pid);
  const ProcessLock::Hold hold = CLEW_TRY(process->hold());
  if (!options.is_held) CLEW_TRY(check_tracer(pid, options.stop_timeout));
  for (unsigned attempt = 0; attempt < kTriesMax; ++attempt) {
    auto seen = CLEW_TRY(join_if_there(pid));
    std::optional<ArenaLock> lock;
    if (seen) lock.emplace(CLEW_TRY(ArenaLock::take(*seen)));
    if (seen) CLEW_TRY(check_children(*seen, pid));
    const Gadgets gadgets = CLEW_TRY(find_gadgets(pid));
    const auto load = find_load(pid, CLEW_TRY(target::read_memory_map(pid)));
    StoppedTarget target = CLEW_TRY(stop_target(pid, options));
    target.use_gadgets(gadgets);
    CLEW_TRY(ledger::check_program(pid));  // It may have begun another program since.
    lock.reset();                          // Nobody else can change the target while we have it.
    auto arena = CLEW_TRY(get_arena(target, options, std::move(seen)));
    if (!arena) continue;
    const bool is_shared =
        live_sessions(*arena) != 0 || (arena->journal().copied_modules & kQueryCopies) != 0;
    auto state = std::make_unique<State>(std::move(*arena), process);
    state->options = options;
    state->gadgets = gadgets;
    auto geometry = add_session(state->arena, options);
    if (!geometry) {
      return fail(geometry.error().code,
                  fmt::format("process {}: {}", pid, geometry.error().message));
    }
    state->geometry = *geometry;
    if (load && !is_shared && !adopts_copies(state->arena, options))
      begin_loads(target, state->arena, *load);
    if (!load) stop_loads(state->arena);
    add_extents(target, state->arena);
    // Where it is not allowed, stopping all threads has to be enough (it is, on x86).
    (void)target.call({.number = SYS_membarrier,
                       .arguments = {MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE}});
    state->time_is_readable = may_read_time(target);
    state->barred = bar_sharers(target);
    give_slots(target, state->arena);
    state->pid_file = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    target.resume();
    state->note_stop(target);
    log_opened(*state, is_shared, target);
    if (!load) log_detail(pid, "its memory is read by the kernel: {}", load.error().message);
    // The attachment owns the session now: it detaches when following fails.
    Attachment attachment(std::move(state));
    if (options.follow_modules) CLEW_TRY(attachment.follow_modules());
    return attachment;
  }
  return fail(ErrorCode::Io, fmt::format("other sessions come and go on process {}", pid));
}

Attachment::Attachment(std::unique_ptr<State> state) : state_(std::move(state)) {}
Attachment::Attachment(Attachment&&) noexcept = default;

Attachment& Attachment::operator=(Attachment&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) (void)detach();
    state_ = std::move(other.state_);
  }
  return *this;
}

Attachment::~Attachment() {
  if (state_ != nullptr) (void)detach();
}

const std::vector<pid_t>& Attachment::barred() const {
  return state_->barred;
}

bool Attachment::knows_threads() const {
  const uint64_t offset = state_->arena.header().tid_offset;
  return offset != abi::kTidFromNobody && offset != abi::kTidFromKernel;
}

void Attachment::lose_contexts(bool for_good) {
  uint64_t& lost = state_->arena.target_page().contexts_lost[state_->geometry.session];
  __atomic_fetch_add(&lost, 1, __ATOMIC_ACQ_REL);
  if (for_good) __atomic_fetch_or(&lost, abi::kContextsForbidden, __ATOMIC_ACQ_REL);
}

bool Attachment::time_is_readable() const {
  return state_->time_is_readable;
}

bool Attachment::cpu_is_readable() const {
  return state_->time_is_readable && has_rdtscp();
}

const Geometry& Attachment::geometry() const {
  return state_->geometry;
}
const Stops& Attachment::stops() const {
  return state_->stops;
}
std::vector<CodeSpan> Attachment::runtime_areas() const {
  const size_t blob_bytes = runtime::runtime_blob().bytes.size();
  const ArenaExtents extents = state_->arena.extents();
  std::vector<CodeSpan> areas;
  areas.reserve(extents.count);
  for (uint32_t i = 0; i < extents.count; ++i) {
    const abi::ExtentRecord& extent = extents.records[i];
    const uint64_t size = std::min<uint64_t>(extent.size_bytes, blob_bytes);
    areas.push_back({.begin = extent.address, .end = extent.address + size});
  }
  return areas;
}
pid_t Attachment::pid() const {
  return state_->pid;
}
int Attachment::pid_descriptor() const {
  return state_->pid_file.get();
}

bool Attachment::may_run_on_copies() const {
  const ArenaShape& shape = state_->arena.shape();
  const uint32_t mine = 1U << state_->geometry.session;
  return shape.keeps_self_pointer && shape.bases != abi::SegmentBases::Tracer &&
         state_->arena.shared() && state_->barred.empty() &&
         (live_sessions(state_->arena) & ~mine) == 0;
}

bool Attachment::serves_later_threads() const {
  return state_->arena.shape().bases != abi::SegmentBases::Tracer;
}

ArenaView Attachment::arena() const {
  const Arena& arena = state_->arena;
  return {.header = &arena.header(),
          .target = &arena.target_page(),
          .slots = arena.slots(),
          .slot_count = arena.shape().slot_count,
          .slot_stride_bytes = arena.shape().slot_stride,
          .memory_file = arena.slots_file(),
          .slots_file_offset = arena.slots_file_offset()};
}

Expected<ProcessLock::Hold> Attachment::hold() {
  return state_->lock->hold();
}

Expected<std::optional<ProcessLock::Hold>> Attachment::try_hold() {
  return state_->lock->try_hold();
}

std::vector<code::Window> Attachment::installed(uint64_t load_bias) const {
  std::vector<code::Window> windows;
  const SiteJournal journal(state_->arena);
  const auto maps = target::read_memory_map(state_->pid);
  for (const auto& [address, site] : journal.by_address()) {
    const abi::SiteRecord& record = journal.site(site);
    const bool is_there = maps && is_mapped_as_recorded(*maps, record);
    if (is_there && record.load_bias == load_bias) windows.push_back(window_of(record));
  }
  return windows;
}

std::vector<uint64_t> Attachment::reloaded() const {
  std::map<uint64_t, bool> is_reloaded;  // By bias. One site of a module says it for all.
  for (const auto& [address, site] : state_->journal->by_address()) {
    const uint64_t bias = state_->journal->site(site).load_bias;
    if (is_reloaded.contains(bias)) continue;
    for (const uint32_t index : state_->journal->layers_of(site)) {
      const abi::LayerRecord& layer = state_->journal->layer(index);
      if (layer.session != state_->geometry.session) continue;
      const abi::PatchRecord& patch = layer.patches[0];
      const size_t from = told_from(state_->journal->site(site));
      const auto original = std::span(patch.original).first(patch.size_bytes).subspan(from);
      is_reloaded[bias] = holds(state_->pid, patch.address + from, original);
    }
  }
  std::vector<uint64_t> biases;
  for (const auto& [bias, is_new] : is_reloaded) {
    if (is_new) biases.push_back(bias);
  }
  return biases;
}

bool Attachment::is_in(std::span<const target::Mapping> maps) const {
  return inline_::has_arena(maps, state_->arena);
}

TargetState Attachment::state() const {
  if (state_->last_state == TargetState::Exited) return state_->last_state;
  pollfd gone = {.fd = state_->pid_file.get(), .events = POLLIN, .revents = 0};
  if (poll(&gone, 1, 0) > 0) {
    state_->last_state = TargetState::Exited;
  } else if (state_->attached && !has_arena(state_->pid, state_->arena)) {
    // A process that is dying has no memory for a while before it is gone.
    const auto maps = target::read_memory_map(state_->pid);
    const bool lives = maps && !maps->empty();
    const bool removed = __atomic_load_n(&state_->session().state, __ATOMIC_ACQUIRE) == 0;
    state_->last_state = removed ? TargetState::Removed : TargetState::Execed;
    if (!lives) state_->last_state = TargetState::Exited;
  }
  return state_->last_state;
}

Event Attachment::wait(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  uint32_t* const requests = &state_->arena.target_page().loader_requests[state_->geometry.session];
  while (true) {
    const uint32_t seen = __atomic_load_n(requests, __ATOMIC_ACQUIRE);
    if (seen != state_->loader_seen) {
      state_->loader_seen = seen;
      const auto loader = read_loader_state(state_->pid);
      if (!loader || loader->consistent) return Event::ModulesChanged;
      answer_loader(*state_);  // The change only begins.
      continue;
    }
    if (state() != TargetState::Running) return Event::TargetGone;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now());
    if (left.count() <= 0) return Event::Nothing;
    const timespec slice = to_timespec(std::min<std::chrono::nanoseconds>(left, kWaitSlice));
    syscall(SYS_futex, requests, FUTEX_WAIT, seen, &slice, nullptr, 0);
  }
}

bool Attachment::loader_waits() const {
  const uint32_t mine = 1U << state_->geometry.session;
  const uint32_t all =
      __atomic_load_n(&state_->arena.target_page().loader_sessions, __ATOMIC_ACQUIRE);
  return (all & mine) != 0;
}

void Attachment::look_at_mappings() {
  if (state_->attached) state_->mappings.look(state_->pid, state_->arena);
}

bool Attachment::modules_done() {
  answer_loader(*state_);
  return !std::exchange(state_->loader_late, false);
}

}  // namespace clew::inline_
