// SPDX-License-Identifier: Apache-2.0
// lay_out and install. Everything that takes time is done while the target runs: code is written to
// the arena, records to the journal. Stopped, only text is compared and changed, and threads that
// stand inside a window are moved.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "base/assert.h"
#include "inline/attachment_state.h"
#include "inline/program_counters.h"
#include "inline/text_image.h"
#include "inline/trampoline_check.h"
#include "runtime/blob.h"
#include "runtime/d_blob.h"

namespace clew::inline_ {
namespace {

// Room that a trampoline needs besides its bodies, at most: for finding an extent.
constexpr uint64_t kStubSizeMax = 256;
constexpr uint64_t kCopySizeMax = 512;
constexpr uint64_t kCodeAlignment = 16;
// RIP-relative data of a module lies behind its text.
constexpr uint64_t kModuleMargin = 64ULL << 20;

CodeRange range_of(const ModuleRequest& module) {
  CodeRange range = {.low = UINT64_MAX, .high = 0};
  for (const Window& window : module.plan->windows) {
    range.low = std::min(range.low, window.address + module.load_bias);
    range.high = std::max(range.high, window.address + window.size_bytes + module.load_bias);
  }
  range.low -= std::min(range.low, kModuleMargin);
  range.high += kModuleMargin;
  return range;
}

uint64_t code_size_of(const ModuleRequest& module) {
  uint64_t size = module.plan->windows.size() * kCopySizeMax;
  for (const BodyShape& body : module.bodies)
    size += body.size_bytes + kStubSizeMax;
  return size;
}

Expected<uint32_t> extent_for(Attachment::State& state, const ModuleRequest& module) {
  const CodeRange range = range_of(module);
  const uint64_t size = code_size_of(module) + state.d_code.size() + kCodeAlignment;
  const auto there = state.arena.find_extent(range, size);
  if (there) return *there;
  StoppedTarget target = CLEW_TRY(stop_target(state.pid, state.options.stop_timeout));
  return state.arena.add_extent(target, range, size);
}

// Nobody runs it before the first body that calls it is installed.
Expected<uint64_t> d_copy(Attachment::State& state, uint32_t extent) {
  const std::vector<uint8_t>& code = state.d_code;
  const auto address = state.arena.take_code(extent, code.size());
  uint8_t* const at = address ? state.arena.code_at(*address, code.size()) : nullptr;
  if (at == nullptr) {
    return fail(ErrorCode::Limit,
                fmt::format("the arena of process {} has no room for more code", state.pid));
  }
  std::memcpy(at, code.data(), code.size());
  return *address;
}

Expected<void> make_entries(Attachment::State& state, uint32_t extent) {
  if (state.accessor_entries.contains(extent)) return {};
  const uint64_t row = state.arena.extents().records[extent].address +
                       runtime::thunk_offset(state.geometry.session, 0);
  AccessorEntries entries;
  if (!state.d_code.empty()) {
    const auto all = runtime::d_accessor_entries(row, CLEW_TRY(d_copy(state, extent)));
    entries.assign(all.begin(), all.end());
  } else {
    for (uint32_t k = 0; k < abi::kAccessorCount; ++k)
      entries.push_back(row + runtime::accessor_offset(0, static_cast<abi::Accessor>(k)));
  }
  state.accessor_entries.emplace(extent, std::move(entries));
  return {};
}

StubEnvironment environment_of(const Attachment::State& state, uint32_t extent) {
  return {.low_address = state.geometry.slot_address,
          .session = state.geometry.session,
          .blob_address = state.arena.extents().records[extent].address,
          .fs_base_instruction = state.arena.shape().fs_base_instruction};
}

// What the layers that are at this site already mean for a new one on top.
struct Below {
  bool possible = true;
  uint32_t points = 0;
  std::array<uint64_t, abi::kWindowInstructionsMax> probes{};
};

Below below(const SiteJournal& journal, uint32_t site, std::span<const Point> points) {
  Below result;
  for (const uint32_t index : journal.layers_of(site)) {
    const abi::LayerRecord& layer = journal.layer(index);
    // A probe behind an instruction lies inside the copy, which a layer above cuts off.
    if (layer.conditional != 0) result.possible = false;
    for (uint32_t i = 0; i < abi::kWindowInstructionsMax; ++i) {
      if ((layer.with_points >> i & 1) == 0) continue;
      result.points |= 1U << i;
      result.probes[i] = layer.address + layer.instructions[i].probe;
    }
  }
  const bool behind = std::any_of(points.begin(), points.end(),
                                  [](const Point& p) { return p.side != Side::Before; });
  if (behind && result.points != 0) result.possible = false;
  return result;
}

class LayoutMaker {
 public:
  LayoutMaker(Attachment::State& state, Layout::State& layout, bool loader_hook = false)
      : state_(state), layout_(layout), loader_hook_(loader_hook) {}

  Expected<void> add_module(uint32_t index, const ModuleRequest& module) {
    CLEW_ASSERT(module.bodies.size() == module.plan->points.size());
    if (module.plan->windows.empty()) return {};
    layout_.windows.reserve(layout_.windows.size() + module.plan->windows.size());
    const auto extent = extent_for(state_, module);
    const bool no_memory = !extent && extent.error().code == ErrorCode::Refused;
    if (!extent && !no_memory) return tl::unexpected(extent.error());
    if (extent) CLEW_TRY(make_entries(state_, *extent));
    find_refused(module, extent.has_value());
    for (uint32_t w = 0; w < module.plan->windows.size(); ++w) {
      const std::span<const Point> points = module.plan->points_of(w);
      if (points.empty()) continue;
      PlannedWindow planned;
      planned.module = index;
      planned.first_point = static_cast<uint32_t>(points.data() - module.plan->points.data());
      planned.point_count = static_cast<uint32_t>(points.size());
      planned.extent = extent ? *extent : 0;
      planned.window = module.plan->windows[w];
      leave_out(points, planned);
      if (planned.wanted_count() != 0) add_window(module, points, std::move(planned));
    }
    return {};
  }

 private:
  // A request is taken at all its points or at none: half a function's exits are no answer.
  void find_refused(const ModuleRequest& module, bool has_memory) {
    refused_.clear();
    for (uint32_t w = 0; w < module.plan->windows.size(); ++w) {
      PlannedWindow planned;
      planned.window = module.plan->windows[w];
      const std::span<const Point> points = module.plan->points_of(w);
      const auto reason = has_memory ? examine(points, module.load_bias, planned)
                                     : std::optional(RefusalReason::NoNearMemory);
      for (size_t i = 0; reason && i < points.size(); ++i)
        refused_.try_emplace(points[i].request, *reason);
    }
  }

  void leave_out(std::span<const Point> points, PlannedWindow& planned) {
    for (uint32_t i = 0; i < planned.point_count; ++i) {
      const auto found = refused_.find(points[i].request);
      planned.left_out.push_back(found != refused_.end());
      if (found == refused_.end()) continue;
      layout_.refusals.push_back({planned.module, planned.first_point + i, found->second});
    }
  }

  void add_window(const ModuleRequest& module, std::span<const Point> points,
                  PlannedWindow planned) {
    auto reason = examine(points, module.load_bias, planned);
    if (!reason) reason = place(module, points, planned);
    if (!reason) return;
    for (uint32_t i = 0; i < planned.point_count; ++i) {
      if (planned.left_out[i]) continue;
      layout_.refusals.push_back({planned.module, planned.first_point + i, *reason});
    }
  }

  // Says what the window meets in the process, or why it cannot be installed.
  std::optional<RefusalReason> examine(std::span<const Point> points, uint64_t load_bias,
                                       PlannedWindow& planned) {
    const Window& window = planned.window;
    planned.site = record_of(window, load_bias);
    planned.tails = tails_of(points, load_bias);
    const uint64_t begin = planned.site.address;
    const uint64_t size = std::max<uint64_t>(window.size_bytes, kJumpSizeBytes);
    if (state_.journal->meets_other(begin, begin + size) || is_probed(planned.tails)) {
      return RefusalReason::WindowInUse;
    }
    const auto site = state_.journal->find(begin);
    if (site && !is_patched(*site)) {
      state_.journal->drop_site_with_layers(*site);  // Its module went away and came back.
    } else if (site) {
      const Below lower = below(*state_.journal, *site, points);
      if (!lower.possible || !same_window(state_.journal->site(*site), window)) {
        return RefusalReason::WindowInUse;
      }
      planned.existing = true;
    }
    return std::nullopt;
  }

  static std::vector<TailText> tails_of(std::span<const Point> points, uint64_t load_bias) {
    std::vector<TailText> tails;
    for (const Point& point : points) {
      if (point.tail.size_bytes == 0) continue;
      tails.push_back({point.tail_address() + load_bias, point.tail});
    }
    return tails;
  }

  // Who runs the copy would pass by the probes of others.
  [[nodiscard]] bool is_probed(std::span<const TailText> tails) const {
    return std::any_of(tails.begin(), tails.end(), [this](const TailText& copied) {
      const uint64_t end = copied.address + copied.tail.size_bytes;
      return state_.journal->find(copied.address) ||
             state_.journal->meets_other(copied.address, end);
    });
  }

  [[nodiscard]] bool is_patched(uint32_t site) const {
    for (const uint32_t index : state_.journal->layers_of(site)) {
      const abi::PatchRecord& patch = state_.journal->layer(index).patches[0];
      std::array<uint8_t, abi::kPatchSizeMax> now{};
      const auto bytes = std::span(now).first(patch.size_bytes);
      if (!target::read_memory(state_.pid, patch.address, bytes)) return false;
      if (!std::equal(bytes.begin(), bytes.end(), patch.original)) return true;
    }
    return false;
  }

  std::optional<RefusalReason> place(const ModuleRequest& module, std::span<const Point> points,
                                     PlannedWindow& planned) {
    const abi::ExtentRecord extent = state_.arena.extents().records[planned.extent];
    const auto site = planned.existing ? state_.journal->find(planned.site.address) : std::nullopt;
    const Below lower = site ? below(*state_.journal, *site, points) : Below{};
    const TrampolineRequest request = {
        .window = &planned.window,
        .points = points,
        .bodies = module.bodies.subspan(planned.first_point, planned.point_count),
        .left_out = &planned.left_out,
        .load_bias = module.load_bias,
        .destination = extent.address + extent.used_bytes,
        .lower_points = lower.points,
        .lower_probes = lower.probes,
        .loader_hook = loader_hook_};
    const StubEnvironment environment = environment_of(state_, planned.extent);
    auto trampoline = build_trampoline(request, environment);
    if (!trampoline) return RefusalReason::NoNearMemory;
    if (!check_trampoline(request, environment, trampoline->bytes, trampoline->patches)) {
      return RefusalReason::WrongTrampoline;
    }
    if (extent.used_bytes + trampoline->bytes.size() + 16 > extent.size_bytes) {
      return RefusalReason::NoNearMemory;
    }
    const auto taken = state_.arena.take_code(planned.extent, trampoline->bytes.size());
    if (taken != request.destination) return RefusalReason::NoNearMemory;
    planned.trampoline = std::move(*trampoline);
    for (uint32_t i = 0; i < planned.point_count; ++i) {
      if (planned.left_out[i]) continue;
      layout_.window_of_point[{planned.module, planned.first_point + i}] =
          static_cast<uint32_t>(layout_.windows.size());
    }
    layout_.windows.push_back(std::move(planned));
    return std::nullopt;
  }

  Attachment::State& state_;
  Layout::State& layout_;
  bool loader_hook_;
  std::map<uint32_t, RefusalReason> refused_;  // Requests of the module.
};

// --- the stopped part ---------------------------------------------------------------------------

class Installer {
 public:
  Installer(Attachment::State& state, std::vector<PlannedWindow>& windows)
      : state_(state), windows_(windows), taken_(windows.size(), true) {}

  Expected<InstallReport> run() {
    CLEW_TRY(write_code());
    CLEW_TRY(check_code());
    CLEW_TRY(record());
    list_ranges();
    TextImage text(ranges_);
    resting_ = find_resting_frames(state_.pid, state_.gadgets.restorer);
    auto stopped = stop_target(state_.pid, state_.options.stop_timeout);
    if (!stopped || !has_arena(state_.pid, state_.arena)) {
      for (size_t i = 0; i < windows_.size(); ++i)
        drop(windows_[i], layers_[i]);
      if (!stopped) return tl::unexpected(stopped.error());
      return fail(ErrorCode::NotFound,
                  fmt::format("process {} runs another program now", state_.pid));
    }
    StoppedTarget& target = *stopped;
    target.use_gadgets(state_.gadgets);
    maps_ = CLEW_TRY(target::read_memory_map(state_.pid));
    CLEW_TRY(change_target(target, text));
    report_.threads = static_cast<uint32_t>(target.threads().size());
    target.resume();
    state_.note_stop(target);
    finish();
    return report_;
  }

 private:
  Expected<void> write_code() {
    for (const PlannedWindow& window : windows_) {
      const std::vector<uint8_t>& bytes = window.trampoline.bytes;
      uint8_t* const at = state_.arena.code_at(window.trampoline.layer.address, bytes.size());
      if (at == nullptr) {
        return fail(ErrorCode::Refused,
                    fmt::format("process {} holds a damaged arena", state_.pid));
      }
      std::memcpy(at, bytes.data(), bytes.size());
    }
    return {};
  }

  // What the process sees at these addresses is what was written, and so what was verified: its
  // program may have mapped something over its arena. A process that cannot be read is left to the
  // stop, which knows why.
  Expected<void> check_code() {
    std::vector<uint8_t> seen;
    for (const PlannedWindow& window : windows_) {
      const std::vector<uint8_t>& bytes = window.trampoline.bytes;
      seen.resize(bytes.size());
      if (!target::read_memory(state_.pid, window.trampoline.layer.address, seen)) return {};
      if (seen == bytes) continue;
      return fail(ErrorCode::Refused,
                  fmt::format("process {} holds other code than its arena", state_.pid));
    }
    return {};
  }

  void list_ranges() {
    for (const PlannedWindow& window : windows_) {
      const uint64_t begin = window.site.address;
      ranges_.push_back({begin, std::max<uint32_t>(window.site.size_bytes, kJumpSizeBytes)});
      for (const Patch& patch : window.trampoline.patches)
        ranges_.push_back({patch.address, patch.size_bytes});
      for (const TailText& copied : window.tails)
        ranges_.push_back({copied.address, copied.tail.size_bytes});
      order_.push_back(order_.size());
    }
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return windows_[a].site.address < windows_[b].site.address;
    });
    for (const size_t i : order_) {
      const abi::SiteRecord& site = windows_[i].site;
      insides_.push_back({site.address + 1, site.address + site.size_bytes});
    }
  }

  Expected<void> change_target(StoppedTarget& target, TextImage& text) {
    text.load(target);
    for (size_t i = 0; i < windows_.size(); ++i)
      taken_[i] = identify_module(windows_[i]) && text_is_expected(text, windows_[i]);
    check_counters(target);
    for (size_t i = 0; i < windows_.size(); ++i) {
      if (!taken_[i]) continue;
      if (windows_[i].existing) {
        state_.journal->relink(state_.journal->layers_of(windows_[i].trampoline.layer.site));
      }
      change_text(text, windows_[i]);
    }
    // Threads first: their copies lead back to text that may still be as it was, but nobody may
    // stand in the middle of a jump.
    CLEW_TRY(move_threads(target));
    CLEW_TRY(target.write_registers());
    CLEW_TRY(text.flush(target));
    (void)target.call(
        {.number = SYS_membarrier, .arguments = {MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE}});
    return {};
  }

  bool identify_module(const PlannedWindow& window) {
    const auto next = std::upper_bound(
        maps_.begin(), maps_.end(), window.site.address,
        [](uint64_t address, const target::Mapping& m) { return address < m.end; });
    if (next == maps_.end() || !next->contains(window.site.address) || !next->executable) {
      return false;
    }
    if (window.existing) return true;
    abi::SiteRecord site = state_.journal->site(window.trampoline.layer.site);
    site.map_start = next->start;
    site.map_inode = next->inode;
    site.map_device = uint64_t{next->device_major} << 32 | next->device_minor;
    site.map_offset = next->file_offset;
    state_.journal->describe_site(window.trampoline.layer.site, site);
    return true;
  }

  // New sites: the whole window and all that is written over equal the file. Others: our jump. What
  // is copied equals the file, too.
  [[nodiscard]] bool text_is_expected(const TextImage& text, const PlannedWindow& window) const {
    const bool same_tails =
        std::all_of(window.tails.begin(), window.tails.end(), [&](const TailText& copied) {
          return text.equals(copied.address, {copied.tail.bytes.data(), copied.tail.size_bytes});
        });
    if (!same_tails) return false;
    if (window.existing) {
      const std::vector<uint32_t> lower = layers_below(window);
      if (lower.empty()) return false;
      const abi::LayerRecord& top = state_.journal->layer(lower.back());
      for (uint32_t i = 0; i < top.patch_count; ++i) {
        const abi::PatchRecord& patch = top.patches[i];
        if (!text.equals(patch.address, {patch.written, patch.size_bytes})) return false;
      }
      return true;
    }
    if (!text.equals(window.site.address, {window.site.original, window.site.size_bytes})) {
      return false;
    }
    return std::all_of(
        window.trampoline.patches.begin(), window.trampoline.patches.end(),
        [&](const Patch& patch) {
          return text.equals(patch.address, {patch.original.data(), patch.size_bytes});
        });
  }

  // Offset in the window of the instruction at which a program counter stands.
  static std::optional<uint32_t> instruction_at(const PlannedWindow& window, uint64_t pc) {
    for (uint32_t i = 0; i < window.site.instruction_count; ++i) {
      if (window.site.address + window.site.instructions[i].offset == pc) return i;
    }
    return std::nullopt;
  }

  // Finds who stands inside the windows (behind the first instruction), and gives up windows where
  // a program counter cannot be explained.
  void check_counters(StoppedTarget& target) {
    for (const ProgramCounter& counter : find_program_counters(target, maps_, insides_, resting_)) {
      const auto found = std::find_if(order_.begin(), order_.end(), [&](size_t i) {
        const abi::SiteRecord& site = windows_[i].site;
        return counter.value > site.address && counter.value < site.address + site.size_bytes;
      });
      if (instruction_at(windows_[*found], counter.value)) {
        moves_.push_back({counter, *found});
      } else {
        taken_[*found] = false;
      }
    }
    check_layers_below(target);
  }

  // A layer on top overwrites the heads of copies below: nobody may stand inside those bytes.
  void check_layers_below(StoppedTarget& target) {
    std::vector<AddressInterval> intervals;
    for (size_t w = 0; w < windows_.size(); ++w) {
      if (!windows_[w].existing || !taken_[w]) continue;
      for (const uint32_t index : layers_below(windows_[w])) {
        const abi::LayerRecord& layer = state_.journal->layer(index);
        intervals.push_back({layer.address, layer.address + layer.size_bytes});
      }
    }
    std::sort(intervals.begin(), intervals.end(),
              [](const AddressInterval& a, const AddressInterval& b) { return a.begin < b.begin; });
    for (const ProgramCounter& counter :
         find_program_counters(target, maps_, intervals, resting_)) {
      for (size_t w = 0; w < windows_.size(); ++w) {
        if (windows_[w].existing && taken_[w] && stands_in_head(windows_[w], counter.value)) {
          taken_[w] = false;
        }
      }
    }
  }

  // Without the new one.
  [[nodiscard]] std::vector<uint32_t> layers_below(const PlannedWindow& window) const {
    std::vector<uint32_t> layers = state_.journal->layers_of(window.trampoline.layer.site);
    layers.pop_back();
    return layers;
  }

  [[nodiscard]] bool stands_in_head(const PlannedWindow& window, uint64_t pc) const {
    for (const uint32_t index : layers_below(window)) {
      const abi::LayerRecord& layer = state_.journal->layer(index);
      for (uint32_t i = 0; i < window.site.instruction_count; ++i) {
        const uint64_t copy = layer.address + layer.instructions[i].copy;
        if (pc > copy && pc < copy + abi::kCopyHeadBytes) return true;
      }
    }
    return false;
  }

  // The journal, before the text. What is not taken after all is dropped by finish().
  Expected<void> record() {
    layers_.assign(windows_.size(), UINT32_MAX);
    for (size_t i = 0; i < windows_.size(); ++i) {
      PlannedWindow& window = windows_[i];
      auto site = state_.journal->find(window.site.address);
      if (!site) {
        window.site.state = abi::SiteState::Prepared;
        site = CLEW_TRY(state_.journal->add_site(window.site));
      }
      window.trampoline.layer.in_use = 1;
      window.trampoline.layer.session = state_.geometry.session;
      window.trampoline.layer.site = *site;
      layers_[i] = CLEW_TRY(state_.journal->add_layer(window.trampoline.layer));
    }
    return {};
  }

  static void change_text(TextImage& text, const PlannedWindow& window) {
    for (const Patch& patch : window.trampoline.patches)
      text.change(patch.address, {patch.replacement.data(), patch.size_bytes});
  }

  Expected<void> move_threads(StoppedTarget& target) {
    for (const auto& [counter, index] : moves_) {
      if (!taken_[index]) continue;
      const PlannedWindow& window = windows_[index];
      const auto instruction = instruction_at(window, counter.value);
      CLEW_ASSERT(instruction.has_value());
      const abi::LayerRecord& layer = window.trampoline.layer;
      CLEW_TRY(set_program_counter(target, counter,
                                   layer.address + layer.instructions[*instruction].probe));
    }
    return {};
  }

  void finish() {
    for (size_t i = 0; i < windows_.size(); ++i) {
      const PlannedWindow& window = windows_[i];
      if (taken_[i]) {
        state_.journal->set_patched(window.trampoline.layer.site);
        ++report_.windows;
        report_.points += window.wanted_count();
        continue;
      }
      drop(window, layers_[i]);
      for (uint32_t p = 0; p < window.point_count; ++p) {
        if (window.left_out[p]) continue;
        report_.refusals.push_back(
            {window.module, window.first_point + p, RefusalReason::ForeignPatch});
      }
    }
  }

  void drop(const PlannedWindow& window, uint32_t layer) {
    state_.journal->drop_layer(layer);
    if (!window.existing) state_.journal->drop_site(window.trampoline.layer.site);
  }

  struct Move {
    ProgramCounter counter;
    size_t window;
  };

  Attachment::State& state_;
  std::vector<PlannedWindow>& windows_;
  std::vector<bool> taken_;
  std::vector<uint32_t> layers_;
  std::vector<TextImage::Range> ranges_;
  std::vector<size_t> order_;             // Windows by address,
  std::vector<AddressInterval> insides_;  // and their bytes but the first.
  std::vector<Move> moves_;
  std::vector<uint64_t> resting_;
  std::vector<target::Mapping> maps_;
  InstallReport report_;
};

}  // namespace

Layout::Layout(std::unique_ptr<State> state) : state_(std::move(state)) {}
Layout::Layout(Layout&&) noexcept = default;
Layout& Layout::operator=(Layout&&) noexcept = default;
Layout::~Layout() = default;

std::optional<BodyPlace> Layout::place(uint32_t module, uint32_t point) const {
  const auto found = state_->window_of_point.find({module, point});
  if (found == state_->window_of_point.end()) return std::nullopt;
  const PlannedWindow& window = state_->windows[found->second];
  const uint32_t offset = window.trampoline.body_offsets[point - window.first_point];
  return BodyPlace{.address = window.trampoline.layer.address + offset,
                   .accessor_entries = state_->accessor_entries->at(window.extent)};
}

const std::vector<PointRefusal>& Layout::refusals() const {
  return state_->refusals;
}

namespace {

// Forgets the sites of modules that were unloaded.
void drop_vanished(Attachment::State& state) {
  const auto maps = target::read_memory_map(state.pid);
  if (!maps) return;
  std::vector<uint32_t> gone;
  for (const auto& [address, site] : state.journal->by_address()) {
    if (!is_mapped_as_recorded(*maps, state.journal->site(site))) gone.push_back(site);
  }
  for (const uint32_t site : gone)
    state.journal->drop_site_with_layers(site);
}

}  // namespace

void Attachment::use_d(uint64_t process) {
  const std::span<const uint8_t> blob = runtime::d_blob();
  state_->d_code.assign(blob.begin(), blob.end());
  runtime::set_place(state_->d_code, {.low_address = geometry().slot_address,
                                      .window = geometry().window_address + abi::kDRegionWindow,
                                      .process = process});
}

Expected<Layout> Attachment::lay_out(std::span<const ModuleRequest> modules) {
  if (state() != TargetState::Running) {
    return fail(ErrorCode::NotFound, fmt::format("process {} is gone", state_->pid));
  }
  auto layout = std::make_unique<Layout::State>(CLEW_TRY(ArenaLock::take(state_->arena)));
  layout->accessor_entries = &state_->accessor_entries;
  state_->journal.emplace(state_->arena);
  drop_vanished(*state_);
  LayoutMaker maker(*state_, *layout);
  for (uint32_t i = 0; i < modules.size(); ++i)
    CLEW_TRY(maker.add_module(i, modules[i]));
  return Layout(std::move(layout));
}

Expected<InstallReport> install_hook(Attachment::State& state, const ModuleRequest& module) {
  Layout::State layout(CLEW_TRY(ArenaLock::take(state.arena)));
  state.journal.emplace(state.arena);
  LayoutMaker maker(state, layout, true);
  CLEW_TRY(maker.add_module(0, module));
  return install_windows(state, layout.windows);
}

Expected<InstallReport> Attachment::install(Layout&& layout, std::span<const Body> bodies) {
  const std::unique_ptr<Layout::State> taken = std::move(layout.state_);
  std::vector<uint32_t> missing;
  for (const PlannedWindow& window : taken->windows)
    missing.push_back(window.wanted_count());
  for (const Body& body : bodies) {
    const auto found = taken->window_of_point.find({body.module, body.point});
    CLEW_ASSERT(found != taken->window_of_point.end());
    PlannedWindow& window = taken->windows[found->second];
    Trampoline& trampoline = window.trampoline;
    const uint32_t offset = trampoline.body_offsets[body.point - window.first_point];
    // The body fills its gap, so that it ends where the stub goes on, and the stub saved what it
    // writes: the verifier has seen the body, not the stub.
    const BodyShape& shape = trampoline.bodies[body.point - window.first_point];
    CLEW_ASSERT(body.code.address() == trampoline.layer.address + offset);
    CLEW_ASSERT(body.code.bytes().size() == shape.size_bytes);
    CLEW_ASSERT(body.code.clobbers() == shape.clobbers);
    std::copy(body.code.bytes().begin(), body.code.bytes().end(),
              trampoline.bytes.begin() + offset);
    --missing[found->second];
  }
  std::vector<PlannedWindow> complete;
  complete.reserve(taken->windows.size());
  for (size_t i = 0; i < taken->windows.size(); ++i) {
    if (missing[i] == 0) complete.push_back(std::move(taken->windows[i]));
  }
  InstallReport report = CLEW_TRY(install_windows(*state_, complete));
  report.refusals.insert(report.refusals.begin(), taken->refusals.begin(), taken->refusals.end());
  return report;
}

Expected<InstallReport> install_windows(Attachment::State& state,
                                        std::vector<PlannedWindow>& windows) {
  return Installer(state, windows).run();
}

}  // namespace clew::inline_
