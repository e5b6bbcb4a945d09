// SPDX-License-Identifier: Apache-2.0
#include "code/anchors.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/page.h"
#include "code/both_ways.h"
#include "code/exits.h"
#include "code/kept_instruction.h"
#include "code/opcodes.h"
#include "code/stack_check.h"

namespace clew::code {
namespace {

// Behind endbr64, which must stay where it is.
uint64_t entry_site(const ModuleCode& code, uint64_t function) {
  const std::span<const uint8_t> text = code.text_from(function);
  const bool marked =
      text.size() >= kEndbr64.size() && std::equal(kEndbr64.begin(), kEndbr64.end(), text.begin());
  return marked ? function + kEndbr64.size() : function;
}

}  // namespace

bool operator<(const Anchor& a, const Anchor& b) {
  if (a.address != b.address) return a.address < b.address;
  if (a.kind != b.kind) return a.kind < b.kind;
  if (a.request != b.request) return a.request < b.request;
  return a.side < b.side;
}

void Resolver::resolve(const Request& request, uint32_t index) {
  index_ = index;
  switch (request.kind) {
    case RequestKind::Entry:
      return resolve_entry(request);
    case RequestKind::Exits:
      return resolve_exits(request.address);
    case RequestKind::Offset:
      return resolve_offset(request);
  }
}

std::optional<Anchor> Resolver::other_way(Anchor anchor, const Request& request) {
  const bool was_behind = anchor.is_behind;
  if (!was_behind && anchor.kept_bytes == 0) return std::nullopt;
  anchor.kept_bytes = 0;
  anchor.is_behind = false;
  anchor.address = anchor.site;
  if (!was_behind && !go_behind(anchor, request.reads)) return std::nullopt;
  set_flags(anchor);
  return anchor;
}

std::optional<uint32_t> Resolver::find_function(uint64_t address) {
  const auto function = code_.function_starting_at(address);
  if (function) return function;
  RefusalReason reason = RefusalReason::NotAFunction;
  if (code_.text_from(address).empty()) reason = RefusalReason::NotCode;
  if (code_.range_starting_at(address)) reason = RefusalReason::ColdPart;
  refuse(reason, address);
  return std::nullopt;
}

void Resolver::resolve_entry(const Request& request) {
  const uint64_t address = request.address;
  const auto function = find_function(address);
  if (!function) return;
  if (code_.is_unsafe(*function)) return refuse(RefusalReason::Undecodable, address);
  uint64_t site = entry_site(code_, address);
  if (!code_.loop_heads_at(address).empty() || !code_.loop_heads_at(site).empty()) {
    site = behind_stack_check(code_, address).value_or(0);
    if (site == 0) return refuse(RefusalReason::EntryIsLoopHead, address);
  }
  Anchor anchor = {.address = site, .kind = PointKind::Entry, .request = index_, .site = site};
  if (site == address) keep_first(anchor, request);
  set_flags(anchor);
  anchors.push_back(anchor);
}

// A trap of others may come to its first byte.
void Resolver::keep_first(Anchor& anchor, const Request& request) {
  const auto kept = kept_instruction(code_.text_from(anchor.site));
  if (kept) {
    anchor.kept_bytes = kept->length;
  } else {
    anchor.serves_both =
        !go_behind(anchor, request.reads) && request.may_serve_both && may_serve_both(anchor);
  }
}

bool Resolver::is_only_way_to(uint64_t behind, uint64_t site) {
  return behind < code_.run_end(site) && code_.at(behind) && !code_.is_target(behind) &&
         !jumps_.may_lead_to(behind);
}

// The marks of the two ways are flags. They are written in one piece, which the kernel does within
// a page.
bool Resolver::may_serve_both(const Anchor& anchor) {
  const std::optional<Instruction> first = code_.at(anchor.site);
  const bool fits = anchor.kind == PointKind::Entry && first && first->flow == Flow::Next &&
                    anchor.site % kPage + kBothWaysSizeBytes <= kPage &&
                    can_serve_both(code_.text_from(anchor.site)) &&
                    is_only_way_to(first->end(), anchor.site);
  if (!fits) return false;
  const uint32_t function = code_.owner_of(*code_.range_at(anchor.site));
  return !flags_.live_at_entry(anchor.site, function) &&
         !flags_.live_at_entry(first->end(), function);
}

// False when the probe must see what the first instruction changes, or something else than the
// first instruction leads behind it.
bool Resolver::go_behind(Anchor& anchor, const ProbeReads& reads) {
  const std::optional<Instruction> first = code_.at(anchor.site);
  if (!first || (first->flow != Flow::Next && first->flow != Flow::Nop)) return false;
  const uint64_t behind = first->end();
  if (!is_only_way_to(behind, anchor.site) || !leaves_alone(code_.text_from(anchor.site), reads))
    return false;
  anchor.address = behind;
  anchor.is_behind = true;
  return true;
}

void Resolver::set_flags(Anchor& anchor) {
  if (anchor.kind != PointKind::Entry) return;
  const uint32_t function = code_.owner_of(*code_.range_at(anchor.site));
  anchor.keeps_flags = flags_.live_at_entry(anchor.address, function);
}

void Resolver::resolve_exits(uint64_t address) {
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

void Resolver::resolve_offset(const Request& request) {
  const uint64_t address = request.address;
  if (code_.text_from(address).empty()) return refuse(RefusalReason::NotCode, address);
  const auto range = code_.range_at(address);
  if (!range) return refuse(RefusalReason::NotAFunction, address);
  if (code_.is_unsafe(*range)) return refuse(RefusalReason::Undecodable, address);
  if (!code_.at(address)) return refuse(RefusalReason::NotAnInstruction, address);
  const uint64_t site = entry_site(code_, address);
  Anchor anchor = {.address = site, .kind = PointKind::Offset, .request = index_, .site = site};
  // The place of a static probe: also that of others' uprobes.
  const bool is_nop = site == address && code_.at(address)->flow == Flow::Nop;
  if (is_nop) anchor.kept_bytes = code_.at(address)->length;
  const bool is_first = site == address && code_.range_starting_at(address);
  if (is_first && !is_nop) keep_first(anchor, request);
  anchors.push_back(anchor);
}

}  // namespace clew::code
