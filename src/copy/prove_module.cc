// SPDX-License-Identifier: Apache-2.0
#include "copy/prove_module.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace clew::copy {

namespace {

uint64_t size_of(const code::ModuleCode& code, uint32_t function) {
  uint64_t size = 0;
  for (const code::AddressRange& part : code.parts_of(function))
    size += part.end - part.begin;
  return size;
}

using code::Flow;

// Finds functions that leave to one of `starts`: by a call, too, or by a jump alone.
std::optional<uint64_t> leads_to(const Facts& facts, uint32_t function,
                                 const std::set<uint64_t>& starts, bool by_call) {
  for (const code::AddressRange& part : facts.code.parts_of(function)) {
    for (auto at = facts.code.at(part.begin); at && at->address < part.end;
         at = facts.code.at(at->end())) {
      const bool is_jump = at->flow == Flow::Jump || at->flow == Flow::Conditional;
      if (!is_jump && !(by_call && at->flow == Flow::Call)) continue;
      if (starts.contains(code::branch_target(facts.code, *at))) return at->address;
    }
  }
  return std::nullopt;
}

bool asks_by_jump(const Facts& facts, uint32_t function) {
  for (const code::AddressRange& part : facts.code.parts_of(function)) {
    for (auto at = facts.code.at(part.begin); at && at->address < part.end;
         at = facts.code.at(at->end())) {
      const bool is_jump =
          at->flow == Flow::Jump || at->flow == Flow::Conditional || at->flow == Flow::IndirectJump;
      if (is_jump && asks_caller(facts, *at)) return true;
    }
  }
  return false;
}

// What asks by a jump is asked by its caller's caller: those who call it stay, too.
void refuse_callers(const Facts& facts, ModuleProof& proof) {
  std::set<uint64_t> asking;
  const auto start_of = [&](uint32_t function) { return facts.code.functions()[function].address; };
  for (const NotCopied& one : proof.refused) {
    const bool asks = one.refusal.reason == Reason::AsksCaller && asks_by_jump(facts, one.function);
    if (asks) asking.insert(start_of(one.function));
  }
  for (size_t known = 0; known != asking.size();) {
    known = asking.size();
    std::erase_if(proof.proved, [&](const Proved& one) {
      const auto at = leads_to(facts, one.function, asking, true);
      if (!at) return false;
      const uint64_t size = size_of(facts.code, one.function);
      proof.refused.push_back({one.function, {Reason::AsksCaller, *at}, size});
      proof.refused_bytes += size;
      proof.proved_bytes -= size;
      if (leads_to(facts, one.function, asking, false)) asking.insert(start_of(one.function));
      return true;
    });
  }
  std::sort(proof.refused.begin(), proof.refused.end(),
            [](const auto& a, const auto& b) { return a.function < b.function; });
}

}  // namespace

ModuleProof prove_module(const Facts& facts) {
  ModuleProof proof;
  for (uint32_t i = 0; i < facts.code.functions().size(); ++i) {
    if (facts.code.owner_of(i) != i) continue;
    const uint64_t size = size_of(facts.code, i);
    auto result = prove(facts, i);
    if (result) {
      proof.proved.push_back(std::move(*result));
      proof.proved_bytes += size;
    } else {
      proof.refused.push_back({i, result.error(), size});
      proof.refused_bytes += size;
    }
  }
  if (!facts.caller_slots.empty()) refuse_callers(facts, proof);
  return proof;
}

}  // namespace clew::copy
