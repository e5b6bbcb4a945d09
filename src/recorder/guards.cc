// SPDX-License-Identifier: Apache-2.0
#include "recorder/guards.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "code/decode.h"

namespace clew::recorder {

namespace {

// As guards/guards.S has it: an ELF note of the name "Clew", and where callbacks are, from each
// word on.
constexpr std::array<uint8_t, 8> kName = {'C', 'l', 'e', 'w', 0, 0, 0, 0};
constexpr size_t kNameOffset = 12;
constexpr size_t kWordsOffset = kNameOffset + kName.size();

// Nops, as long as a jump, and a return.
bool does_nothing(std::span<const uint8_t> bytes) {
  constexpr size_t kJump = 5;
  size_t size = 0;
  while (size < bytes.size()) {
    const auto decoded = code::decode(bytes.subspan(size));
    if (!decoded) return false;
    if (decoded->flow == code::Flow::Return) return size >= kJump;
    if (decoded->flow != code::Flow::Nop) return false;
    size += decoded->length;
  }
  return false;
}

std::span<const uint8_t> text_at(const target::ModuleImage& image, uint64_t address) {
  const target::Section* const section = image.section_at(address);
  if (section == nullptr || !section->executable) return {};
  const auto bytes = image.bytes(*section);
  const uint64_t offset = address - section->address;
  return bytes && offset < bytes->size() ? bytes->subspan(offset) : std::span<const uint8_t>();
}

void add_callbacks(const target::ModuleImage& image, const target::Section& note,
                   std::vector<uint64_t>& found) {
  const auto bytes = image.bytes(note);
  if (!bytes || bytes->size() < kWordsOffset) return;
  if (std::memcmp(bytes->data() + kNameOffset, kName.data(), kName.size()) != 0) return;
  for (size_t at = kWordsOffset; at + sizeof(int32_t) <= bytes->size(); at += sizeof(int32_t)) {
    int32_t distance = 0;
    std::memcpy(&distance, bytes->data() + at, sizeof(distance));
    const uint64_t address = note.address + at + static_cast<uint64_t>(int64_t{distance});
    if (does_nothing(text_at(image, address))) found.push_back(address);
  }
}

bool calls_any(const copy::Facts& facts, const std::vector<uint64_t>& callbacks, uint64_t address) {
  const auto call = facts.code.at(address);
  return call && call->flow == code::Flow::Call &&
         std::binary_search(callbacks.begin(), callbacks.end(),
                            code::branch_target(facts.code, *call));
}

}  // namespace

std::vector<uint64_t> guard_callbacks(const target::ModuleImage& image) {
  std::vector<uint64_t> found;
  for (const target::Section& section : image.sections()) {
    if (section.name == kGuardsNote) add_callbacks(image, section, found);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

copy::ModuleProof guarded_functions(const copy::Facts& facts,
                                    const std::vector<uint64_t>& callbacks) {
  std::set<uint32_t> functions;
  facts.code.each_call([&](const code::Instruction& call) {
    const auto range = facts.code.range_at(call.address);
    if (range && calls_any(facts, callbacks, call.address))
      functions.insert(facts.code.owner_of(*range));
  });
  copy::ModuleProof proof;
  for (const uint32_t function : functions) {
    copy::Proved found{.function = function,
                       .blocks = code::find_blocks(facts.code, function, facts.noreturn),
                       .switches = {}};
    if (found.blocks.is_whole() && !found.blocks.blocks().empty())
      proof.proved.push_back(std::move(found));
  }
  return proof;
}

ModuleTiling tile_guards(const copy::Facts& facts, const std::vector<uint64_t>& callbacks,
                         const copy::ModuleProof& proof) {
  ModuleTiling tiling;
  for (const copy::Proved& proved : proof.proved) {
    FunctionTiling function;
    function.is_guarded = true;
    const auto& blocks = proved.blocks.blocks();
    for (uint32_t block = 0; block < blocks.size(); ++block) {
      if (!calls_any(facts, callbacks, blocks[block].last)) continue;
      function.heads.push_back({block, static_cast<uint32_t>(function.heads.size())});
    }
    tiling.first_dag.push_back(tiling.dag_count);
    tiling.dag_count += static_cast<uint32_t>(function.heads.size());
    tiling.functions.push_back(std::move(function));
  }
  return tiling;
}

std::vector<GuardCall> guard_calls(const copy::Facts& facts, const std::vector<uint64_t>& callbacks,
                                   const copy::ModuleProof& proof, const ModuleTiling& tiling) {
  std::vector<GuardCall> calls;
  facts.code.each_call([&](const code::Instruction& call) {
    if (calls_any(facts, callbacks, call.address)) calls.push_back({call.end(), tiling.dag_count});
  });
  std::sort(calls.begin(), calls.end(),
            [](const GuardCall& a, const GuardCall& b) { return a.behind < b.behind; });
  for (size_t i = 0; i < proof.proved.size(); ++i) {
    const auto& blocks = proof.proved[i].blocks.blocks();
    for (const DagHead& head : tiling.functions[i].heads) {
      const uint64_t behind = blocks[head.block].end;
      const auto found = std::lower_bound(
          calls.begin(), calls.end(), behind,
          [](const GuardCall& call, uint64_t address) { return call.behind < address; });
      if (found != calls.end() && found->behind == behind)
        found->dag = tiling.first_dag[i] + head.dag;
    }
  }
  return calls;
}

}  // namespace clew::recorder
