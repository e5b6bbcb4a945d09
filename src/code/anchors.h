// SPDX-License-Identifier: Apache-2.0
// Which places of the text the requests for probes want, before anything is known of room.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "code/flag_use.h"
#include "code/module_code.h"
#include "code/unexplained.h"
#include "code/windows.h"

namespace clew::code {

// One side of an instruction where one request wants a probe.
struct Anchor {
  uint64_t address = 0;
  PointKind kind = PointKind::Entry;
  Side side = Side::Before;
  bool tail_call = false;
  bool keeps_flags = false;
  uint8_t kept_bytes = 0;    // Of the instruction, which stays where that is possible.
  bool serves_both = false;  // Bytes that serve both ways may stand here (both_ways.h).
  bool is_behind = false;    // `address`: behind the instruction at `site`, which is done in place.
  uint32_t request = 0;
  uint64_t site = 0;  // Point::address.
  Tail tail = {};
};
bool operator<(const Anchor& a, const Anchor& b);

// Requests -> anchors. Borrows both.
class Resolver {
 public:
  Resolver(const ModuleCode& code, FlagValues& flags) : code_(code), flags_(flags), jumps_(code) {}

  void resolve(const Request& request, uint32_t index);

  // The same in the other of two ways, when there is another one: behind the first instruction, or
  // over it.
  std::optional<Anchor> other_way(Anchor anchor, const Request& request);

  std::vector<Anchor> anchors;
  std::vector<Refusal> refusals;

 private:
  void refuse(RefusalReason reason, uint64_t address) {
    refusals.push_back({index_, reason, address});
  }
  std::optional<uint32_t> find_function(uint64_t address);
  void resolve_entry(const Request& request);
  void resolve_exits(uint64_t address);
  void resolve_offset(const Request& request);
  void keep_first(Anchor& anchor, const Request& request);
  bool go_behind(Anchor& anchor, const ProbeReads& reads);
  [[nodiscard]] bool is_only_way_to(uint64_t behind, uint64_t site);
  bool may_serve_both(const Anchor& anchor);
  void set_flags(Anchor& anchor);

  const ModuleCode& code_;
  FlagValues& flags_;
  UnexplainedJumps jumps_;
  uint32_t index_ = 0;
};

}  // namespace clew::code
