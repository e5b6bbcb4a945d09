// SPDX-License-Identifier: Apache-2.0
// The planner: which sites are wanted, where their windows go, what is refused.
#include "inline/windows.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "inline/exits.h"
#include "inline/flag_use.h"
#include "inline/kept_instruction.h"
#include "inline/stack_check.h"
#include "inline/stack_depth.h"
#include "inline/window_builder.h"

namespace clew::inline_ {

namespace {

constexpr std::array<uint8_t, 4> kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};
constexpr unsigned kInstructionsBackMax = 12;

// How far a 2-byte jump reaches from the byte behind it.
constexpr uint64_t kHopBehindMax = 128;
constexpr uint64_t kHopAheadMax = 127;

// One side of an instruction where one request wants a probe.
struct Anchor {
  uint64_t address = 0;
  PointKind kind = PointKind::Entry;
  Side side = Side::Before;
  bool tail_call = false;
  bool keeps_flags = false;
  uint8_t kept_bytes = 0;  // Of the instruction, which stays where that is possible.
  uint32_t request = 0;
  uint64_t site = 0;  // Point::address.
  Tail tail = {};
};

bool operator<(const Anchor& a, const Anchor& b) {
  if (a.address != b.address) return a.address < b.address;
  if (a.kind != b.kind) return a.kind < b.kind;
  if (a.request != b.request) return a.request < b.request;
  return a.side < b.side;
}

// Behind endbr64, which must stay where it is.
uint64_t entry_site(const ModuleCode& code, uint64_t function) {
  const std::span<const uint8_t> text = code.text_from(function);
  const bool marked =
      text.size() >= kEndbr64.size() && std::equal(kEndbr64.begin(), kEndbr64.end(), text.begin());
  return marked ? function + kEndbr64.size() : function;
}

// Requests -> anchors.
class Resolver {
 public:
  explicit Resolver(const ModuleCode& code) : code_(code), flags_(code) {}

  void resolve(const Request& request, uint32_t index) {
    index_ = index;
    switch (request.kind) {
      case RequestKind::Entry:
        return resolve_entry(request.address);
      case RequestKind::Exits:
        return resolve_exits(request.address);
      case RequestKind::Offset:
        return resolve_offset(request.address);
    }
  }

  std::vector<Anchor> anchors;
  std::vector<Refusal> refusals;

 private:
  void refuse(RefusalReason reason, uint64_t address) {
    refusals.push_back({index_, reason, address});
  }

  std::optional<uint32_t> find_function(uint64_t address) {
    const auto function = code_.function_starting_at(address);
    if (function) return function;
    RefusalReason reason = RefusalReason::NotAFunction;
    if (code_.text_from(address).empty()) reason = RefusalReason::NotCode;
    if (code_.range_starting_at(address)) reason = RefusalReason::ColdPart;
    refuse(reason, address);
    return std::nullopt;
  }

  void resolve_entry(uint64_t address) {
    const auto function = find_function(address);
    if (!function) return;
    if (code_.is_unsafe(*function)) return refuse(RefusalReason::Undecodable, address);
    uint64_t site = entry_site(code_, address);
    if (!code_.loop_heads_at(address).empty() || !code_.loop_heads_at(site).empty()) {
      site = behind_stack_check(code_, address).value_or(0);
      if (site == 0) return refuse(RefusalReason::EntryIsLoopHead, address);
    }
    const auto kept = kept_instruction(code_.text_from(site));
    anchors.push_back({.address = site,
                       .kind = PointKind::Entry,
                       .keeps_flags = flags_.live_at_entry(site, *function),
                       .kept_bytes = site == address && kept ? kept->length : uint8_t{0},
                       .request = index_,
                       .site = site});
  }

  void resolve_exits(uint64_t address) {
    const auto function = find_function(address);
    if (!function) return;
    const auto exits = find_exits(code_, *function);
    if (!exits) return refuse(exits.error().reason, exits.error().address);
    for (const Exit& exit : *exits) {
      anchors.push_back({.address = exit.address,
                         .kind = PointKind::Exit,
                         .side = exit.side,
                         .tail_call = exit.tail_call,
                         .keeps_flags = flags_.live_at_exit(exit, *function),
                         .request = index_,
                         .site = exit.address});
    }
  }

  void resolve_offset(uint64_t address) {
    if (code_.text_from(address).empty()) return refuse(RefusalReason::NotCode, address);
    const auto range = code_.range_at(address);
    if (!range) return refuse(RefusalReason::NotAFunction, address);
    if (code_.is_unsafe(*range)) return refuse(RefusalReason::Undecodable, address);
    if (!code_.at(address)) return refuse(RefusalReason::NotAnInstruction, address);
    const uint64_t site = entry_site(code_, address);
    // The place of a static probe: also that of others' uprobes.
    const bool is_nop = site == address && code_.at(address)->flow == Flow::Nop;
    anchors.push_back({.address = site,
                       .kind = PointKind::Offset,
                       .kept_bytes = is_nop ? code_.at(address)->length : uint8_t{0},
                       .request = index_,
                       .site = site});
  }

  const ModuleCode& code_;
  FlagValues flags_;
  uint32_t index_ = 0;
};

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
  Placer(const ModuleCode& code, std::span<const Window> installed) : code_(code) {
    for (const Window& window : installed) {
      installed_[window.address] = &window;
      occupy(window);
    }
  }

  struct Wanted {
    uint64_t address = 0;
    bool is_entry = false;
    uint8_t kept_bytes = 0;                          // Where there is room.
    RefusalReason reason = RefusalReason::TooShort;  // When it failed.
  };

  void run(std::span<const Wanted> wanted) {
    std::vector<Wanted> without_room;
    for (const Wanted& want : wanted) {
      if (may_be_copied(want.address)) {
        failed[want.address] = RefusalReason::WindowInUse;
        continue;
      }
      if (place(want)) continue;
      without_room.push_back(want);
      without_room.back().reason = reason_;
    }
    for (const bool entries : {true, false}) {
      for (const Wanted& want : without_room) {
        if (want.is_entry == entries && !place_hop(want.address)) {
          failed[want.address] = want.reason;
        }
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

  void keep(Window window) {
    occupy(window);
    windows[window.address] = std::move(window);
  }

  bool place(const Wanted& want) {
    const uint64_t address = want.address;
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
    return false;
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
    if (!unexplained_jump_may_enter(*window)) {
      if (!occupied_.overlaps(window->address, end_of(*window))) {
        keep(std::move(*window));
        return true;
      }
      if (try_merge(*window)) return true;
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

  // A jump that nobody understands may go to any instruction at which the stack is as deep as at
  // the jump: compilers keep the depth the same along every edge.
  bool unexplained_jump_may_enter(const Window& window) {
    if (window.instructions.size() < 2) return false;
    const uint32_t function = code_.owner_of(*code_.range_at(window.address));
    if (function != function_) {
      function_ = function;
      unexplained_ = unexplained_jumps(code_, function);
      depths_.reset();
    }
    if (unexplained_.empty()) return false;
    if (!depths_) depths_.emplace(code_, function);
    for (const uint64_t jump : unexplained_) {
      const std::optional<int64_t> depth = depths_->at(jump);
      for (size_t i = 1; i < window.instructions.size(); ++i) {
        const auto inside = depths_->at(window.address + window.instructions[i].offset);
        if (!depth || !inside || *depth == *inside) return true;
      }
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
    if (!window || unexplained_jump_may_enter(*window)) return false;
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
  uint32_t function_ = kNoOwner;                    // Whose data is in the next two.
  std::vector<uint64_t> unexplained_;
  std::optional<StackDepths> depths_;
};

std::vector<Placer::Wanted> wanted_addresses(std::span<const Anchor> anchors) {
  std::vector<Placer::Wanted> wanted;
  for (const Anchor& anchor : anchors) {
    if (wanted.empty() || wanted.back().address != anchor.address) {
      wanted.push_back({.address = anchor.address});
    }
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
    const auto failure = placer.failed.find(anchor.address);
    if (failure == placer.failed.end()) continue;
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
  return static_cast<uint8_t>(found - window.instructions.begin());
}

// Windows that lost all their points to refusals are left out.
Plan make_plan(const Placer& placer, std::span<const Anchor> anchors) {
  Plan plan;
  for (const Anchor& anchor : anchors) {
    const Window& window = *placer.covering(anchor.address);
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

Plan plan_windows(const ModuleCode& code, std::span<const Request> requests,
                  std::span<const Window> installed) {
  Resolver resolver(code);
  for (uint32_t i = 0; i < requests.size(); ++i)
    resolver.resolve(requests[i], i);
  std::vector<Anchor>& anchors = resolver.anchors;
  std::sort(anchors.begin(), anchors.end());
  Placer placer(code, installed);
  placer.run(wanted_addresses(anchors));
  const std::vector<Anchor> moved = replace_failed_returns(code, placer, requests, anchors);
  placer.run(wanted_addresses(moved));
  anchors.insert(anchors.end(), moved.begin(), moved.end());
  std::sort(anchors.begin(), anchors.end());
  drop_failed(placer, anchors, resolver.refusals);
  Plan plan = make_plan(placer, anchors);
  plan.refusals = std::move(resolver.refusals);
  std::sort(plan.refusals.begin(), plan.refusals.end(),
            [](const Refusal& a, const Refusal& b) { return a.request < b.request; });
  return plan;
}

}  // namespace clew::inline_
