// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/inline_process.h"

#include <cerrno>
#include <numeric>
#include <string_view>

#include <cpuid.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "base/error_text.h"
#include "base/page.h"
#include "engine/dtrace/inline_clock.h"
#include "engine/memory_need.h"
#include "engine/session_file.h"
#include "engine/session_memory.h"
#include "inline/file_size_limit.h"
#include "kernel/uprobe_place.h"
#include "target/process.h"

namespace clew::engine {

static_assert(offsetof(abi::MachineShared, activity) == 0);

namespace {

abi::RegionLayout region_layout(CellRoom room) {
  abi::RegionLayout layout{};
  layout.cells_offset = abi::kMachineRegionWindow + room.begin;
  layout.cells_half_bytes = room.size_bytes();
  layout.size_log2 = abi::kMachineRegionSizeLog2;
  layout.generations = 1;
  layout.ring = {.offset = abi::kMachineRegionRing, .size_log2 = abi::kMachineRingSizeLog2};
  return layout;
}

bool has_rdpid() {
  constexpr unsigned kRdpid = 1U << 22;  // CPUID 7.0, ECX
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & kRdpid) != 0;
}

uint64_t session_stamp() {
  return static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC)) | 1;
}

Expected<void> check_identity(pid_t pid) {
  if (kernel::has_kernels_pids(pid)) return {};
  return fail(ErrorCode::Refused,
              fmt::format("process {} is in another pid namespace [pid-ns]", pid));
}

Expected<void> check_arena(const abi::ArenaHeader& header) {
  if (header.fork_policy != abi::ForkPolicy::Mute) {
    return fail(ErrorCode::Refused, "another session follows the forks of the process [follow]");
  }
  if (header.bases == abi::SegmentBases::Tracer) {
    return fail(ErrorCode::Refused,
                "later threads of the process cannot set their gs base [fsgsbase]");
  }
  if (header.tid_offset == abi::kTidFromNobody) {
    return fail(ErrorCode::Refused, "the threads of the process do not know their ids [no-tid]");
  }
  return {};
}

Expected<void> write_at(const FileDescriptor& file, uint64_t offset,
                        std::span<const uint8_t> bytes) {
  const inline_::FileSizeLimit limit;
  const ssize_t done = pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (done == static_cast<ssize_t>(bytes.size())) return {};
  return fail(ErrorCode::Io, fmt::format("memory of a session: {}", error_text(errno)));
}

inline_::SharedPart part_of(const kernel::MachineStateArray& array, bool is_low) {
  return {.descriptor = array.map,
          .size_bytes = array.size_bytes,
          .is_writable = true,
          .is_low = is_low};
}

template <typename Value>
std::span<const uint8_t> bytes_of(std::span<const Value> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

// What a process gets to read, one after the other, behind the MachineProcess.
class Constants {
 public:
  // Its offset in the file.
  uint64_t add(std::span<const uint8_t> piece) {
    const uint64_t offset = sizeof(abi::MachineProcess) + bytes_.size();
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    bytes_.resize((bytes_.size() + 7) & ~size_t{7});
    return offset;
  }
  [[nodiscard]] uint64_t file_bytes() const {
    return (sizeof(abi::MachineProcess) + bytes_.size() + kPage - 1) / kPage * kPage;
  }
  Expected<void> write(const FileDescriptor& file, const abi::MachineProcess& process) const {
    CLEW_TRY(write_at(file, 0, bytes_of(std::span(&process, 1))));
    return write_at(file, sizeof process, bytes_);
  }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace

Expected<std::unique_ptr<InlineProcess>> InlineProcess::open(
    std::shared_ptr<inline_::ProcessLock> lock, const kernel::MachineState& state,
    InlineCells cells, bool walks_stacks) {
  const pid_t pid = lock->pid();
  CLEW_TRY(check_identity(pid));
  inline_::OpenOptions options;
  options.region = region_layout(cells.room());
  options.lock = std::move(lock);
  CLEW_TRY(check_memory(std::span(&pid, 1), options.region));
  auto process = std::make_unique<InlineProcess>(
      pid, CLEW_TRY(inline_::Attachment::open(pid, options)), std::move(cells));
  CLEW_TRY(check_arena(*process->attachment_.arena().header));
  CLEW_TRY(process->share(state));
  if (walks_stacks) CLEW_TRY(process->stacks_.emplace(false).share(process->attachment_));
  return process;
}

bool InlineProcess::has_counter() const {
  return attachment_.time_is_readable() && counter_is_the_clock();
}

Expected<void> InlineProcess::share(const kernel::MachineState& state) {
  Constants constants;
  const uint64_t variables = constants.add(state.variables);
  const uint64_t aggregations = constants.add(state.aggregations);
  const uint64_t enablings = constants.add(bytes_of(state.enablings));
  const uint64_t names = constants.add(state.names);
  const uint64_t literals = constants.add(state.literals);
  own_file_ = CLEW_TRY(make_session_file(constants.file_bytes()));
  const FileDescriptor reader = CLEW_TRY(open_read_only(own_file_));
  const std::vector<inline_::SharedPart> parts = {
      part_of(state.shared, true),
      part_of(state.globals, true),
      part_of(state.dynamic, false),
      part_of(state.aggregates, false),
      {.descriptor = reader.get(), .size_bytes = constants.file_bytes(), .is_low = true}};
  const std::vector<uint64_t> places = CLEW_TRY(attachment_.share(parts));
  const uint64_t own = places.back();
  abi::MachineProcess process = state.process;
  process.shared = places[0];
  process.globals = places[1];
  process.dynamic = places[2];
  process.aggregates = places[3];
  process.variables = own + variables;
  process.aggregations = own + aggregations;
  process.enabled = own + enablings;
  process.enabled_count = state.enablings.size();
  process.names = own + names;
  process.literals = own + literals;
  process.pid = static_cast<uint64_t>(pid_);
  process.session = attachment_.geometry().session;
  process.stamp = session_stamp();
  process.has_rdpid = has_rdpid() ? 1 : 0;
  process.clock = attachment_.time_is_readable() ? find_process_clock(pid_) : 0;
  process.clock_offset_ns = clock_offset_ns(pid_);
  CLEW_TRY(constants.write(own_file_, process));
  attachment_.use_d(own);
  const inline_::Geometry& geometry = attachment_.geometry();
  rules_.environment.is_machine = true;
  rules_.environment.window_address = geometry.window_address + abi::kMachineRegionWindow;
  rules_.environment.window_size_log2 = abi::kMachineWindowSizeLog2;
  rules_.environment.slot_address = geometry.slot_address;
  rules_.environment.generation_address = static_cast<uint32_t>(process.shared);
  rules_.environment.globals_address = static_cast<uint32_t>(process.globals);
  rules_.environment.globals_bytes = static_cast<uint32_t>(process.globals_bytes);
  rules_.policy.window_address = rules_.environment.window_address;
  rules_.policy.window_size_log2 = rules_.environment.window_size_log2;
  rules_.policy.slot_address = geometry.slot_address;
  rules_.policy.generation_address = rules_.environment.generation_address;
  rules_.policy.globals_address = rules_.environment.globals_address;
  rules_.policy.globals_bytes = rules_.environment.globals_bytes;
  rules_.policy.time_is_readable = attachment_.time_is_readable();
  rules_.policy.cpu_is_readable = attachment_.cpu_is_readable();
  return {};
}

Expected<void> InlineProcess::make_reader() {
  collect::SessionView view = session_memory(attachment_, region_layout(cells_.room()));
  view.has_records = true;
  view.dense_words = cells_.words();
  reader_ = std::make_unique<collect::Reader>(CLEW_TRY(collect::Reader::make(std::move(view))));
  threads_.watch(0, pid_);
  return {};
}

Expected<ArmReport> InlineProcess::arm(std::span<const ModulePoints> modules) {
  CLEW_TRY(make_reader());
  return arm_points(attachment_, modules, rules_);
}

std::vector<collect::DisarmedProbe> InlineProcess::disarm_spinning(
    std::vector<std::string>& problems) {
  if (fuel_guard_.empty()) return {};
  const std::vector<uint64_t> sums = read_sums();
  return fuel_guard_.look(attachment_, cells_.out_of_fuel(sums), problems);
}

std::vector<collect::DisarmedProbe> InlineProcess::keep_below(const OverheadBound& bound,
                                                              std::vector<std::string>& problems) {
  if (!is_running()) return {};
  return costs_.keep_below(bound, attachment_, problems);
}

void InlineProcess::add_cost(collect::Cost& cost) const {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  cost.processes.push_back(costs_.cost(pid_));
  cost.stops += attachment_.stops().count;
  cost.stopped_ms += Milliseconds(attachment_.stops().all).count();
}

// A walk that ends at code without tables says so, also where there is none: not more often than
// once in a second.
void InlineProcess::look_at_code() {
  constexpr auto kSilence = std::chrono::seconds(1);
  const auto now = std::chrono::steady_clock::now();
  if (!stacks_ || now - looked_ < kSilence) return;
  const uint32_t met = __atomic_load_n(
      &attachment_.arena().target->unknown_code[attachment_.geometry().session], __ATOMIC_RELAXED);
  if (std::exchange(unknown_code_, met) == met) return;
  looked_ = now;
  stacks_->look_at(pid_);
  stacks_->update();
}

namespace {

// The words of all threads, added up.
class CellSums final : public collect::CellSink {
 public:
  explicit CellSums(uint32_t words) : sums_(words) {}
  [[nodiscard]] std::vector<uint64_t> take() { return std::move(sums_); }

  void dense(const collect::SlotIdentity&, std::span<const uint64_t> words) override {
    for (size_t i = 0; i < words.size() && i < sums_.size(); ++i)
      sums_[i] += words[i];
  }
  void entry(const collect::SlotIdentity&, uint32_t, std::span<const uint64_t>,
             std::span<const uint64_t>) override {}

 private:
  std::vector<uint64_t> sums_;
};

}  // namespace

void InlineProcess::keep_house() {
  CellSums cells(0);  // What ended threads have counted stays in their slots.
  collect::EventBatch events;
  threads_.refresh();
  (void)reader_->free_dead_slots(threads_, cells, events);
  look_at_code();
  attachment_.look_at_mappings();
}

void InlineProcess::add_cells(uint32_t aggregation, bool takes,
                              std::vector<kernel::MachineAggregate>& entries) {
  cells_.add(aggregation, read_sums(), takes, entries);
}

std::vector<uint64_t> InlineProcess::read_sums() {
  CellSums sums(cells_.words());
  if (cells_.words() != 0) reader_->read_cells(sums);
  return sums.take();
}

// Records without room are counted where the kernel's programs count theirs; what the stubs leave
// out is a probe inside of a probe, or one in a thread too many.
void InlineProcess::add_losses(abi::MachineLosses& losses) {
  collect::Losses all;
  reader_->add_losses(all);
  for (const std::string_view cause :
       {collect::kMissedReentry, collect::kMissedAbandoned, collect::kMissedNoSlot}) {
    const auto found = all.missed.find(cause);
    if (found != all.missed.end()) losses.nested += found->second;
  }
  const std::vector<uint64_t> sums = read_sums();
  const auto exhausted = cells_.out_of_fuel(sums);
  losses.fuel += std::accumulate(exhausted.begin(), exhausted.end(), uint64_t{0});
  losses.left_alone += cells_.left_alone(sums);
}

}  // namespace clew::engine
