// SPDX-License-Identifier: Apache-2.0
// The planner: where the windows of the wanted sites go, and what is refused.
#include "code/windows.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/assert.h"
#include "code/anchors.h"
#include "code/exits.h"
#include "code/later_uprobe.h"
#include "code/unexplained.h"
#include "code/window_builder.h"

namespace clew::code {

namespace {

constexpr unsigned kInstructionsBackMax = 12;

// How far a 2-byte jump reaches from the byte behind it.
constexpr uint64_t kHopBehindMax = 128;
constexpr uint64_t kHopAheadMax = 127;

// Windows and hops by first byte, never overlapping.
class Occupied {
 public:
  void add(uint64_t begin, uint64_t end) { ends_[begin] = end; }
  void remove(uint64_t begin) { ends_.erase(begin); }

  [[nodiscard]] bool overlaps(uint64_t begin, uint64_t end) const {
    auto after = ends_.lower_bound(end);
    if (after == ends_.begin()) return false;
    return std::prev(after)->second > begin;
  }

 private:
  std::map<uint64_t, uint64_t> ends_;
};

// Places windows for a set of addresses; every address that gets none is in `failed`.
class Placer {
 public:
  Placer(const ModuleCode& code, std::span<const Window> installed, LateUprobeDanger danger)
      : code_(code), danger_(danger), unexplained_(code) {
    for (const Window& window : installed) {
      if (occupied_.overlaps(window.address, end_of(window))) continue;  // A false journal.
      installed_[window.address] = &window;
      occupy(window);
    }
  }

  struct Wanted {
    uint64_t address = 0;
    bool is_entry = false;
    uint8_t kept_bytes = 0;                          // Where there is room.
    bool serves_both = false;                        // All that is wanted there can live with it.
    RefusalReason reason = RefusalReason::TooShort;  // When it failed.
  };

  void run(std::span<const Wanted> wanted) {
    std::vector<Wanted> without_room;
    for (const Wanted& want : wanted) {
      if (may_be_copied(want.address) || contradicts_installed(want)) {
        failed[want.address] = RefusalReason::WindowInUse;
        continue;
      }
      if (place(want)) continue;
      without_room.push_back(want);
      without_room.back().reason = reason_;
    }
    for (const bool entries : {true, false}) {
      for (const Wanted& want : without_room) {
        was_dangerous_ = false;
        if (want.is_entry != entries || place_hop(want.address)) continue;
        failed[want.address] = was_dangerous_ ? RefusalReason::LaterUprobe : want.reason;
      }
    }
  }

  // Does no window or hop have any of these bytes?
  [[nodiscard]] bool is_free(uint64_t begin, uint64_t end) const {
    return !occupied_.overlaps(begin, end);
  }

  [[nodiscard]] const Window* covering(uint64_t address) const {
    const auto after = windows.upper_bound(address);
    if (after == windows.begin()) return nullptr;
    const Window& window = std::prev(after)->second;
    return address < window.address + window.size_bytes ? &window : nullptr;
  }

  std::map<uint64_t, Window> windows;  // By address.
  std::map<uint64_t, RefusalReason> failed;

 private:
  void occupy(const Window& window) {
    occupied_.add(window.address, end_of(window));
    if (window.hop_address != 0) {
      occupied_.add(window.hop_address, window.hop_address + kJumpSizeBytes);
    }
  }

  void vacate(const Window& window) {
    occupied_.remove(window.address);
    if (window.hop_address != 0) occupied_.remove(window.hop_address);
  }

  void keep(Window window) {
    CLEW_ASSERT(!window.instructions.empty());
    CLEW_ASSERT(!occupied_.overlaps(window.address, end_of(window)));
    occupy(window);
    windows[window.address] = std::move(window);
  }

  bool place(const Wanted& want) {
    const uint64_t address = want.address;
    was_dangerous_ = false;
    if (covering(address) != nullptr || reuse_installed(address)) return true;
    const WindowWish behind = {address, address, WindowClass::OwnBytes, want.kept_bytes};
    if (want.kept_bytes != 0 && try_at(behind, false)) return true;
    for (const WindowClass step : {WindowClass::OwnBytes, WindowClass::OwnBytesAndPadding}) {
      uint64_t start = address;
      for (unsigned i = 0; i < kInstructionsBackMax && start != 0; ++i) {
        if (try_at({start, address, step}, start == address)) return true;
        start = earlier_start(code_, start);
      }
    }
    if (!was_dangerous_) return false;
    reason_ = RefusalReason::LaterUprobe;
    return want.serves_both && try_at({address, address, WindowClass::BothWays}, false);
  }

  // Its jump would stand where somebody's uprobe may come, who cannot live with it.
  bool is_dangerous(const Window& window) {
    const uint64_t jump = window.jump_address();
    if (danger_ == LateUprobeDanger::Allowed) return false;
    const bool is_deadly = code_.range_starting_at(jump) &&
                           later_uprobe(code_, {&window, 1}, jump) == LaterUprobe::Dangerous;
    const bool is =
        is_deadly || (danger_ == LateUprobeDanger::Refused && covers_probe_place(window));
    was_dangerous_ = was_dangerous_ || is;
    return is;
  }

  // A trap in the middle of a jump is its end. At its first byte, Linux from 6.18 on replaces a nop
  // of five bytes, and our jump with it (arch/x86/kernel/uprobes.c, arch_uprobe_optimize); before,
  // hits would be the others' alone.
  [[nodiscard]] bool covers_probe_place(const Window& window) const {
    const auto places = code_.probe_places();
    const uint64_t begin =
        window.window_class == WindowClass::BothWays ? window.address : window.jump_address();
    const uint64_t size =
        window.window_class == WindowClass::ShortJump ? kShortJumpSizeBytes : kJumpSizeBytes;
    const auto next = std::lower_bound(places.begin(), places.end(), begin);
    return next != places.end() && *next < window.jump_address() + size;
  }

  bool reuse_installed(uint64_t address) {
    const Window* const window = installed_at(address);
    if (window == nullptr) return false;
    windows[window->address] = *window;
    return true;
  }

  [[nodiscard]] const Window* installed_at(uint64_t address) const {
    const auto after = installed_.upper_bound(address);
    if (after == installed_.begin()) return nullptr;
    const Window& window = *std::prev(after)->second;
    return address - window.address < window.size_bytes ? &window : nullptr;
  }

  // The file has changed in place since another session took the window, or its journal is false.
  // Or flags are asked for where that window has marks in them.
  [[nodiscard]] bool contradicts_installed(const Wanted& want) const {
    const uint64_t address = want.address;
    const Window* const window = installed_at(address);
    if (window == nullptr) return false;
    const bool is_marked =
        window->window_class == WindowClass::BothWays && address == window->address;
    if (is_marked && !want.serves_both) return true;
    return std::none_of(
        window->instructions.begin(), window->instructions.end(),
        [&](const Displaced& displaced) { return window->address + displaced.offset == address; });
  }

  // Is the instruction in what another session may have copied for the ways to a return? Calls that
  // run the copy would pass by a probe here.
  [[nodiscard]] bool may_be_copied(uint64_t address) const {
    if (installed_.empty() || installed_at(address) != nullptr) return false;
    std::optional<Instruction> at = code_.at(address);
    while (at && at->flow != Flow::Return && at->end() - address < kTailSizeMax)
      at = code_.at(at->end());
    const auto range = at ? code_.range_at(at->address) : std::nullopt;
    if (!range) return false;
    const auto found = ways_to_return(code_, code_.owner_of(*range), at->address);
    return found && found->tail.size_bytes != 0 && found->begin <= address &&
           std::any_of(found->ways.begin(), found->ways.end(),
                       [this](const Exit& way) { return installed_at(way.address) != nullptr; });
  }

  // `first` attempts are those whose reason a refusal reports.
  bool try_at(const WindowWish& wish, bool first) {
    auto window = build_window(code_, wish);
    if (!window) {
      if (first && wish.window_class == WindowClass::OwnBytes) reason_ = window.error();
      return false;
    }
    if (is_dangerous(*window)) return false;
    if (!unexplained_jump_may_enter(*window)) {
      if (!occupied_.overlaps(window->address, end_of(*window))) {
        keep(std::move(*window));
        return true;
      }
      if (try_merge(*window) || try_merge_right(*window)) return true;
      if (first) reason_ = RefusalReason::WindowInUse;
      return false;
    }
    if (first) reason_ = RefusalReason::IndirectJump;
    return false;
  }

  // Joins the window with the one on its left that it overlaps.
  bool try_merge(const Window& window) {
    const auto right = windows.upper_bound(window.address);
    if (right == windows.begin()) return false;
    const Window& left = std::prev(right)->second;
    if (installed_.count(left.address) != 0 || end_of(left) <= window.address) return false;
    const uint64_t last = std::max(window.address + window.instructions.back().offset,
                                   left.address + left.instructions.back().offset);
    auto merged = build_window(code_, {left.address, last, left.window_class, left.kept_bytes});
    if (!merged || unexplained_jump_may_enter(*merged)) return false;
    merged->hop_address = left.hop_address;
    merged->hop_original = left.hop_original;
    occupied_.remove(left.address);
    if (occupied_.overlaps(merged->address, end_of(*merged))) {
      occupied_.add(left.address, end_of(left));
      return false;
    }
    keep(std::move(*merged));
    return true;
  }

  // Joins the window with the one on its right that it overlaps, whose jump is not needed then.
  bool try_merge_right(const Window& window) {
    const auto found = windows.upper_bound(window.address);
    if (found == windows.end() || found->first >= end_of(window)) return false;
    const Window right = found->second;
    if (installed_.count(right.address) != 0) return false;
    const uint64_t last = std::max(window.address + window.instructions.back().offset,
                                   right.address + right.instructions.back().offset);
    auto merged =
        build_window(code_, {window.address, last, window.window_class, window.kept_bytes});
    if (!merged || unexplained_jump_may_enter(*merged)) return false;
    vacate(right);
    if (occupied_.overlaps(merged->address, end_of(*merged))) {
      occupy(right);
      return false;
    }
    windows.erase(right.address);
    keep(std::move(*merged));
    return true;
  }

  bool unexplained_jump_may_enter(const Window& window) {
    for (size_t i = 1; i < window.instructions.size(); ++i) {
      if (unexplained_.may_lead_to(window.address + window.instructions[i].offset)) return true;
    }
    return false;
  }

  bool place_hop(uint64_t address) {
    if (covering(address) != nullptr) return true;
    uint64_t start = address;
    for (unsigned i = 0; i < kInstructionsBackMax && start != 0; ++i) {
      if (try_hop({start, address, WindowClass::ShortJump})) return true;
      start = earlier_start(code_, start);
    }
    return false;
  }

  bool try_hop(const WindowWish& wish) {
    auto window = build_window(code_, wish);
    if (!window || is_dangerous(*window) || unexplained_jump_may_enter(*window)) return false;
    if (occupied_.overlaps(window->address, end_of(*window))) return try_merge(*window);
    const uint64_t hop = find_hop(*window);
    if (hop == 0) return false;
    window->hop_address = hop;
    std::copy_n(code_.text_from(hop).begin(), kJumpSizeBytes, window->hop_original.begin());
    keep(std::move(*window));
    return true;
  }

  // 5 free dead bytes that `jmp rel8` at the window reaches; 0 when there are none. Ahead first.
  [[nodiscard]] uint64_t find_hop(const Window& window) const {
    const uint64_t from = window.address + kShortJumpSizeBytes;
    const uint64_t lowest = from > kHopBehindMax ? from - kHopBehindMax : 0;
    const uint64_t highest = from + kHopAheadMax;
    // The window's own bytes and padding are not free.
    for (std::optional<Instruction> at = code_.at(window.address); at && at->address <= highest;
         at = code_.at(at->end())) {
      if (const uint64_t hop = free_pad(*at, {end_of(window), highest})) return hop;
    }
    const uint64_t in_front = std::max<uint64_t>(window.address, kJumpSizeBytes) - kJumpSizeBytes;
    for (std::optional<Instruction> at = code_.before(window.address); at && at->end() > lowest;
         at = code_.before(at->address)) {
      if (const uint64_t hop = free_pad(*at, {lowest, in_front})) return hop;
    }
    return 0;
  }

  struct Reach {
    uint64_t lowest = 0;
    uint64_t highest = 0;
  };

  // A free place in the padding behind `instruction`, when control does not pass it.
  [[nodiscard]] uint64_t free_pad(const Instruction& instruction, const Reach& reach) const {
    const bool passes = instruction.flow != Flow::Jump && instruction.flow != Flow::IndirectJump &&
                        instruction.flow != Flow::Return;
    if (passes) return 0;
    const auto range = code_.range_at(instruction.address);
    if (!range || code_.is_unsafe(*range)) return 0;
    const uint64_t end = padding_end(code_, instruction.end());
    for (uint64_t at = instruction.end(); at + kJumpSizeBytes <= end; ++at) {
      if (at < reach.lowest || at > reach.highest) continue;
      if (occupied_.overlaps(at, at + kJumpSizeBytes)) continue;
      if (!code_.overlaps_rseq(at, at + kJumpSizeBytes)) return at;
    }
    return 0;
  }

  const ModuleCode& code_;
  std::map<uint64_t, const Window*> installed_;  // By address.
  Occupied occupied_;
  RefusalReason reason_ = RefusalReason::TooShort;  // Of the last failure.
  LateUprobeDanger danger_;
  bool was_dangerous_ = false;  // Only therefore there was no room for the last one, perhaps.
  UnexplainedJumps unexplained_;
};

std::vector<Placer::Wanted> wanted_addresses(std::span<const Anchor> anchors) {
  std::vector<Placer::Wanted> wanted;
  for (const Anchor& anchor : anchors) {
    if (wanted.empty() || wanted.back().address != anchor.address) {
      wanted.push_back({.address = anchor.address, .serves_both = true});
    }
    wanted.back().serves_both &= anchor.serves_both;
    wanted.back().is_entry |= anchor.kind == PointKind::Entry;
    wanted.back().kept_bytes = std::max(wanted.back().kept_bytes, anchor.kept_bytes);
  }
  return wanted;
}

// The returns that got no window, but all of whose calls can be caught before them.
std::vector<Anchor> replace_failed_returns(const ModuleCode& code, const Placer& placer,
                                           std::span<const Request> requests,
                                           std::vector<Anchor>& anchors) {
  std::vector<Anchor> added;
  const auto replaced = [&](const Anchor& anchor) {
    const bool is_return = anchor.kind == PointKind::Exit && !anchor.tail_call;
    if (!is_return || placer.failed.count(anchor.address) == 0) return false;
    const auto function = code.function_starting_at(requests[anchor.request].address);
    const auto found = ways_to_return(code, *function, anchor.address);
    // Nobody may pass by a probe of others.
    if (!found || !placer.is_free(found->begin, anchor.address + 1)) return false;
    for (const Exit& way : found->ways) {
      Anchor moved = anchor;
      moved.address = way.address;
      moved.side = way.side;
      moved.tail = found->tail;
      added.push_back(moved);
    }
    return true;
  };
  std::erase_if(anchors, replaced);
  std::sort(added.begin(), added.end());
  return added;
}

// The entries that got no window, but may get one in another way.
std::vector<Anchor> turn_failed_entries(Resolver& resolver, const Placer& placer,
                                        std::span<const Request> requests,
                                        std::vector<Anchor>& anchors) {
  std::vector<Anchor> turned;
  std::erase_if(anchors, [&](const Anchor& anchor) {
    const bool is_entry = anchor.kind != PointKind::Exit;
    if (!is_entry || placer.failed.count(anchor.address) == 0) return false;
    const auto other = resolver.other_way(anchor, requests[anchor.request]);
    if (other) turned.push_back(*other);
    return other.has_value();
  });
  return turned;
}

// What an exit is refused with: the detail matters only when it is not about room.
RefusalReason reported(PointKind kind, RefusalReason reason) {
  const bool is_room = reason == RefusalReason::TooShort ||
                       reason == RefusalReason::BranchIntoWindow ||
                       reason == RefusalReason::CrossesFunction;
  return kind == PointKind::Exit && is_room ? RefusalReason::NoRoomForExit : reason;
}

// Refuses every request that has an anchor without a window, and drops all its anchors.
void drop_failed(const Placer& placer, std::vector<Anchor>& anchors,
                 std::vector<Refusal>& refusals) {
  std::map<uint32_t, Refusal> refused;
  for (const Anchor& anchor : anchors) {
    auto failure = placer.failed.find(anchor.address);
    if (failure == placer.failed.end()) continue;
    // Where the other way failed, too, the first one says why.
    const auto first = placer.failed.find(anchor.site);
    if (first != placer.failed.end()) failure = first;
    refused.try_emplace(
        anchor.request,
        Refusal{anchor.request, reported(anchor.kind, failure->second), anchor.site});
  }
  for (const auto& [request, refusal] : refused)
    refusals.push_back(refusal);
  anchors.erase(std::remove_if(anchors.begin(), anchors.end(),
                               [&](const Anchor& a) { return refused.count(a.request) != 0; }),
                anchors.end());
}

uint8_t instruction_index(const Window& window, uint64_t address) {
  const auto found = std::find_if(
      window.instructions.begin(), window.instructions.end(),
      [&](const Displaced& displaced) { return window.address + displaced.offset == address; });
  CLEW_ASSERT(found != window.instructions.end());  // A probe stands at an instruction.
  return static_cast<uint8_t>(found - window.instructions.begin());
}

// Windows that lost all their points to refusals are left out.
Plan make_plan(const Placer& placer, std::span<const Anchor> anchors) {
  Plan plan;
  for (const Anchor& anchor : anchors) {
    const Window* const found = placer.covering(anchor.address);
    CLEW_ASSERT(found != nullptr);  // What has none was dropped.
    const Window& window = *found;
    if (plan.windows.empty() || plan.windows.back().address != window.address) {
      plan.windows.push_back(window);
    }
    plan.points.push_back({.window = static_cast<uint32_t>(plan.windows.size() - 1),
                           .instruction = instruction_index(window, anchor.address),
                           .kind = anchor.kind,
                           .side = anchor.side,
                           .tail_call = anchor.tail_call,
                           .keeps_flags = anchor.keeps_flags,
                           .request = anchor.request,
                           .address = anchor.site,
                           .tail = anchor.tail});
  }
  return plan;
}

}  // namespace

std::span<const Point> Plan::points_of(uint32_t window) const {
  const auto first =
      std::lower_bound(points.begin(), points.end(), window,
                       [](const Point& point, uint32_t value) { return point.window < value; });
  const auto last =
      std::upper_bound(points.begin(), points.end(), window,
                       [](uint32_t value, const Point& point) { return value < point.window; });
  return {first, last};
}

bool is_behind_first(const Plan& plan, const Point& point) {
  CLEW_ASSERT(point.window < plan.windows.size());
  const Window& window = plan.windows[point.window];
  CLEW_ASSERT(point.instruction < window.instructions.size());
  const uint64_t at = window.address + window.instructions[point.instruction].offset;
  return point.kind != PointKind::Exit && at > point.address;
}

Plan plan_windows(const ModuleCode& code, std::span<const Request> requests,
                  std::span<const Window> installed, LateUprobeDanger danger) {
  FlagValues flags(code);
  return plan_windows(code, flags, requests, installed, danger);
}

Plan plan_windows(const ModuleCode& code, FlagValues& flags, std::span<const Request> requests,
                  std::span<const Window> installed, LateUprobeDanger danger) {
  Resolver resolver(code, flags);
  for (uint32_t i = 0; i < requests.size(); ++i)
    resolver.resolve(requests[i], i);
  std::vector<Anchor>& anchors = resolver.anchors;
  std::sort(anchors.begin(), anchors.end());
  Placer placer(code, installed, danger);
  placer.run(wanted_addresses(anchors));
  std::vector<Anchor> moved = replace_failed_returns(code, placer, requests, anchors);
  const std::vector<Anchor> turned = turn_failed_entries(resolver, placer, requests, anchors);
  moved.insert(moved.end(), turned.begin(), turned.end());
  std::sort(moved.begin(), moved.end());
  placer.run(wanted_addresses(moved));
  anchors.insert(anchors.end(), moved.begin(), moved.end());
  std::sort(anchors.begin(), anchors.end());
  drop_failed(placer, anchors, resolver.refusals);
  Plan plan = make_plan(placer, anchors);
  CLEW_ASSERT(plan.points.size() == anchors.size());
  plan.refusals = std::move(resolver.refusals);
  std::sort(plan.refusals.begin(), plan.refusals.end(),
            [](const Refusal& a, const Refusal& b) { return a.request < b.request; });
  return plan;
}

}  // namespace clew::code
