// SPDX-License-Identifier: Apache-2.0
// Attaching parts to functions, by the jumps between them.
#include "code/parts.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace clew::code {

namespace {

// Cold parts may jump to each other before they reach their function, and lie beside each other:
// this many rounds are enough for what compilers make.
constexpr unsigned kRoundsMax = 16;

class OwnerFinder {
 public:
  OwnerFinder(const ModuleCode& code, const PartEvidence& evidence)
      : code_(code), evidence_(evidence), neighbours_(code.functions().size()) {
    for (const FunctionRange& range : code_.functions()) {
      owners_.push_back(range.owner == kNoOwner && range.mid_frame ? kUnknownOwner : range.owner);
    }
  }

  std::vector<uint32_t> run() {
    collect_neighbours();
    for (unsigned round = 0; round < kRoundsMax && attach_all(); ++round) {
    }
    return std::move(owners_);
  }

 private:
  // What jumps connect a range with.
  struct Neighbour {
    uint32_t range = 0;
    bool jumps_here = false;         // It jumps to this range.
    bool is_entered_behind = false;  // This range jumps into it, behind its first byte.
  };

  void collect_neighbours() {
    for (const CrossJump& jump : evidence_.jumps) {
      const auto from = code_.range_at(jump.from);
      const auto to = code_.range_at(jump.to);
      if (!from || !to || *from == *to) continue;
      const bool behind = code_.functions()[*to].address != jump.to;
      neighbours_[*to].push_back({*from, true, false});
      neighbours_[*from].push_back({*to, false, behind});
    }
    for (const PartLink& link : evidence_.links) {
      const auto a = code_.range_at(link.function);
      const auto b = code_.range_at(link.part);
      if (!a || !b || *a == *b) continue;
      neighbours_[*a].push_back({*b, true, true});
      neighbours_[*b].push_back({*a, true, true});
    }
  }

  bool attach_all() {
    bool changed = false;
    for (uint32_t range = 0; range < owners_.size(); ++range) {
      if (!may_be_part(range)) continue;
      const auto owner = owner_of(range);
      if (!owner) continue;
      owners_[range] = *owner;
      changed = true;
    }
    return changed;
  }

  [[nodiscard]] bool may_be_part(uint32_t range) const {
    if (owners_[range] == kUnknownOwner) return true;
    return owners_[range] == kNoOwner && code_.functions()[range].unnamed &&
           !evidence_.has_callers[range];
  }

  // The function at the end of the chain of owners; nothing while that is not known.
  [[nodiscard]] std::optional<uint32_t> root(uint32_t range) const {
    if (owners_[range] == kNoOwner) return range;
    if (owners_[range] == kUnknownOwner) return std::nullopt;
    return owners_[range];
  }

  [[nodiscard]] std::optional<uint32_t> owner_of(uint32_t range) const {
    const bool mid_frame = owners_[range] == kUnknownOwner;
    std::optional<uint32_t> owner;
    bool jumps_here = false;
    bool goes_back = false;
    for (const Neighbour& neighbour : neighbours_[range]) {
      if (!neighbour.jumps_here && !neighbour.is_entered_behind) continue;
      const auto candidate = root(neighbour.range);
      if (!candidate || *candidate == range) continue;
      if (owner && *owner != *candidate) return std::nullopt;
      owner = candidate;
      jumps_here |= neighbour.jumps_here;
      goes_back |= neighbour.is_entered_behind;
    }
    const bool is_part = mid_frame || (jumps_here && (goes_back || lies_among_parts(range)));
    return is_part ? owner : std::nullopt;
  }

  // The linker puts cold parts together.
  [[nodiscard]] bool lies_among_parts(uint32_t range) const {
    const bool behind = range > 0 && owners_[range - 1] != kNoOwner;
    const bool before = range + 1 < owners_.size() && owners_[range + 1] != kNoOwner;
    return behind || before;
  }

  const ModuleCode& code_;
  const PartEvidence& evidence_;
  std::vector<std::vector<Neighbour>> neighbours_;
  std::vector<uint32_t> owners_;
};

}  // namespace

std::vector<uint32_t> find_owners(const ModuleCode& code, const PartEvidence& evidence) {
  return OwnerFinder(code, evidence).run();
}

}  // namespace clew::code
