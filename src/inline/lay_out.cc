// SPDX-License-Identifier: Apache-2.0
// lay_out: windows -> trampolines at their places, while the target runs. What a window meets there
// (other sessions' windows, layers below, no memory in reach) refuses its requests.
#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "abi/calling.h"
#include "base/assert.h"
#include "inline/attachment_state.h"
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
  for (const code::Window& window : module.plan->windows) {
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
  StoppedTarget target = CLEW_TRY(stop_target(state.pid, state.options));
  auto extent = state.arena.add_extent(target, range, size);
  target.resume();
  log_stop(target, "map memory for code");
  return extent;
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
    for (uint32_t k = 0; k < abi::kDoorCount; ++k)
      entries.push_back(row + runtime::thunk_offset(0, k));
  }
  state.accessor_entries.emplace(extent, std::move(entries));
  return {};
}

OwnerCheck owner_check_of(const ArenaShape& shape) {
  if (shape.keeps_self_pointer) return OwnerCheck::SelfPointer;
  const bool by_instruction = shape.bases == abi::SegmentBases::Instructions;
  return by_instruction ? OwnerCheck::Instruction : OwnerCheck::Claim;
}

StubEnvironment environment_of(const Attachment::State& state, uint32_t extent) {
  return {
      .low_address = state.geometry.slot_address,
      .session = state.geometry.session,
      .blob_address = state.arena.extents().records[extent].address,
      .owner_check = owner_check_of(state.arena.shape()),
      .unreadable_address = state.geometry.window_address +
                            static_cast<uint32_t>(offsetof(abi::RegionHeader, missed_unreadable))};
}

// What the layers that are at this site already mean for a new one on top.
struct Below {
  bool possible = true;
  uint32_t points = 0;
  std::array<uint64_t, abi::kWindowInstructionsMax> probes{};
};

Below below(const SiteJournal& journal, uint32_t site, std::span<const code::Point> points) {
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
  const bool behind = std::any_of(points.begin(), points.end(), [](const code::Point& p) {
    return p.side != code::Side::Before;
  });
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
      const std::span<const code::Point> points = module.plan->points_of(w);
      if (points.empty()) continue;
      PlannedWindow planned;
      planned.module = index;
      planned.first_point = static_cast<uint32_t>(points.data() - module.plan->points.data());
      planned.point_count = static_cast<uint32_t>(points.size());
      planned.extent = extent ? *extent : 0;
      planned.window = module.plan->windows[w];
      leave_out(points, planned);
      if (planned.wanted_count() == 0) leave_copies_of(module, planned);
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
      const std::span<const code::Point> points = module.plan->points_of(w);
      const auto reason = has_memory ? examine(points, module, planned)
                                     : std::optional(code::RefusalReason::NoNearMemory);
      for (size_t i = 0; reason && i < points.size(); ++i)
        refused_.try_emplace(points[i].request, *reason);
    }
  }

  void leave_out(std::span<const code::Point> points, PlannedWindow& planned) {
    for (uint32_t i = 0; i < planned.point_count; ++i) {
      const auto found = refused_.find(points[i].request);
      planned.left_out.push_back(found != refused_.end());
      if (found == refused_.end()) continue;
      layout_.refusals.push_back({planned.module, planned.first_point + i, found->second});
    }
  }

  void add_window(const ModuleRequest& module, std::span<const code::Point> points,
                  PlannedWindow planned) {
    auto reason = examine(points, module, planned);
    if (!reason) reason = place(module, points, planned);
    if (!reason) return;
    leave_copies_of(module, planned);
    for (uint32_t i = 0; i < planned.point_count; ++i) {
      if (planned.left_out[i]) continue;
      layout_.refusals.push_back({planned.module, planned.first_point + i, *reason});
    }
  }

  // Says what the window meets in the process, or why it cannot be installed.
  std::optional<code::RefusalReason> examine(std::span<const code::Point> points,
                                             const ModuleRequest& module, PlannedWindow& planned) {
    const code::Window& window = planned.window;
    planned.site = record_of(window, module.load_bias);
    planned.tails = tails_of(points, module.load_bias);
    const target::Mapping* const mapping = mapping_at(module.text, planned.site.address);
    if (mapping != nullptr) record_mapping(*mapping, planned.site);
    const uint64_t begin = planned.site.address;
    if (state_.journal->meets_other(begin, end_of(planned.site)) || is_probed(planned.tails)) {
      return code::RefusalReason::WindowInUse;
    }
    const auto site = state_.journal->find(begin);
    if (site && !is_patched(*site)) {
      state_.journal->drop_site_with_layers(*site);  // Its module went away and came back.
    } else if (site) {
      const Below lower = below(*state_.journal, *site, points);
      if (!lower.possible || !same_window(state_.journal->site(*site), window)) {
        return code::RefusalReason::WindowInUse;
      }
      planned.existing = true;
    }
    return std::nullopt;
  }

  // Windows with one point have one.
  static CopyWay way_of(const ModuleRequest& module, const PlannedWindow& planned) {
    if (module.copies.empty() || planned.point_count != 1 || planned.existing) return {};
    return module.copies[planned.first_point];
  }

  // What is not counted here is not to be counted there.
  void leave_copies_of(const ModuleRequest& module, const PlannedWindow& planned) const {
    for (uint32_t i = 0; i < planned.point_count && !module.copies.empty(); ++i) {
      const CopyWay& way = module.copies[planned.first_point + i];
      if (way.entry != 0) lead_to_original(state_.arena, way);
    }
  }

  static std::vector<TailText> tails_of(std::span<const code::Point> points, uint64_t load_bias) {
    std::vector<TailText> tails;
    for (const code::Point& point : points) {
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
      const size_t from = told_from(state_.journal->site(site));
      const auto bytes = std::span(now).first(patch.size_bytes).subspan(from);
      if (!target::read_memory(state_.pid, patch.address + from, bytes)) return false;
      if (!std::equal(bytes.begin(), bytes.end(), patch.original + from)) return true;
    }
    return false;
  }

  std::optional<code::RefusalReason> place(const ModuleRequest& module,
                                           std::span<const code::Point> points,
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
        .loader_hook = loader_hook_,
        .copy = way_of(module, planned).resume};
    const StubEnvironment environment = environment_of(state_, planned.extent);
    auto trampoline = build_trampoline(request, environment);
    if (!trampoline) return code::RefusalReason::NoNearMemory;
    if (!check_trampoline(request, environment, trampoline->bytes, trampoline->patches)) {
      return code::RefusalReason::WrongTrampoline;
    }
    if (extent.used_bytes + trampoline->bytes.size() + 16 > extent.size_bytes) {
      return code::RefusalReason::NoNearMemory;
    }
    const auto taken = state_.arena.take_code(planned.extent, trampoline->bytes.size());
    if (taken != request.destination) return code::RefusalReason::NoNearMemory;
    planned.trampoline = std::move(*trampoline);
    planned.trampoline.layer.copy_entry = way_of(module, planned).entry;
    planned.trampoline.layer.copy_original = way_of(module, planned).original;
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
  std::map<uint32_t, code::RefusalReason> refused_;  // Requests of the module.
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

std::vector<CodeSpan> Layout::probe_code(uint32_t module, uint32_t point) const {
  const auto found = state_->window_of_point.find({module, point});
  if (found == state_->window_of_point.end()) return {};
  const abi::LayerRecord& layer = state_->windows[found->second].trampoline.layer;
  std::vector<CodeSpan> spans;
  for (uint32_t i = 0; i < abi::kWindowInstructionsMax; ++i) {
    if ((layer.with_points >> i & 1) == 0) continue;
    const abi::LayerInstruction& at = layer.instructions[i];
    spans.push_back({.begin = layer.address + at.probe, .end = layer.address + at.copy});
  }
  // The jump back, and what is out of line.
  if (layer.back_offset != 0) {
    spans.push_back(
        {.begin = layer.address + layer.back_offset,
         .end = layer.address + state_->windows[found->second].trampoline.bytes.size()});
  }
  return spans;
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
                                      .window = geometry().window_address -
                                                geometry().slot_address + abi::kMachineRegionWindow,
                                      .process = process});
}

void Attachment::use_unwind_tables(uint64_t tables, uint64_t rows) {
  abi::SessionEntry& entry = state_->arena.header().sessions[geometry().session];
  entry.unwind_rows = rows;
  __atomic_store_n(&entry.unwind_tables, tables, __ATOMIC_RELEASE);
}

Expected<Layout> Attachment::lay_out(std::span<const ModuleRequest> modules) {
  if (state() != TargetState::Running) {
    return fail(ErrorCode::NotFound, fmt::format("process {} is gone", state_->pid));
  }
  ProcessLock::Hold hold = CLEW_TRY(state_->lock->hold());
  auto layout =
      std::make_unique<Layout::State>(std::move(hold), CLEW_TRY(ArenaLock::take(state_->arena)));
  layout->accessor_entries = &state_->accessor_entries;
  state_->journal.emplace(state_->arena);
  drop_vanished(*state_);
  LayoutMaker maker(*state_, *layout);
  for (uint32_t i = 0; i < modules.size(); ++i)
    CLEW_TRY(maker.add_module(i, modules[i]));
  return Layout(std::move(layout));
}

Expected<InstallReport> install_hook(Attachment::State& state, const ModuleRequest& module) {
  ProcessLock::Hold hold = CLEW_TRY(state.lock->hold());
  Layout::State layout(std::move(hold), CLEW_TRY(ArenaLock::take(state.arena)));
  state.journal.emplace(state.arena);
  LayoutMaker maker(state, layout, true);
  CLEW_TRY(maker.add_module(0, module));
  return install_windows(state, layout.windows);
}

}  // namespace clew::inline_
