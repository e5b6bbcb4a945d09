// SPDX-License-Identifier: Apache-2.0
// Recognition of switch tables.
#include "code/jump_tables.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "code/decode.h"

namespace clew::code {

namespace {

// How far before the jump the load of the table's entry may stand, in instructions. Compilers put
// it 1 to 4 before; the scheduler moves a few others between.
constexpr unsigned kLoadDistanceMax = 16;

// The first byte behind legacy and REX prefixes, as an offset; `rex` gets the REX prefix or 0.
unsigned opcode_offset(std::span<const uint8_t> bytes, uint8_t& rex) {
  unsigned at = 0;
  const auto is_prefix = [](uint8_t byte) {
    return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x3e;
  };
  while (at + 1 < bytes.size() && is_prefix(bytes[at]))
    ++at;
  rex = 0;
  if (at + 1 < bytes.size() && (bytes[at] & 0xf0) == 0x40) rex = bytes[at++];
  return at;
}

// A table of `&&label - &&first_label` must have this many entries to be believed: the words are
// small, and nothing ties them to the label that the code adds.
constexpr size_t kLabelEntriesMin = 4;
constexpr size_t kLabelsMax = 16;

// movsxd r64, [base + index * 4]; without optimisation mov eax, [..] and cdqe.
bool loads_offset(std::span<const uint8_t> bytes) {
  uint8_t rex = 0;
  const unsigned at = opcode_offset(bytes, rex);
  if ((rex & 8) != 0 && bytes[at] == 0x98) return true;
  if (bytes.size() < at + 3 || (rex & 8) == 0 || bytes[at] != 0x63) return false;
  if ((bytes[at + 1] & 0xc7) == 5) return true;  // [rip + x]: the index is constant.
  const bool has_sib = (bytes[at + 1] & 7) == 4 && bytes[at + 1] < 0xc0;
  return has_sib && bytes[at + 2] >> 6 == 2;
}

void sort_unique(std::vector<uint64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// The memory operand of `jmp [.. + index * 8]`.
struct IndexedJump {
  bool indexed = false;
  bool has_base = true;
  uint64_t table = 0;  // Without a base.
};

IndexedJump indexed_jump(std::span<const uint8_t> bytes) {
  uint8_t rex = 0;
  const unsigned at = opcode_offset(bytes, rex);
  if (bytes.size() < at + 3 || bytes[at] != 0xff || bytes[at + 1] >= 0xc0) return {};
  if ((bytes[at + 1] & 7) != 4 || bytes[at + 2] >> 6 != 3) return {};
  const bool has_base = (bytes[at + 2] & 7) != 5 || bytes[at + 1] >> 6 != 0;
  if (has_base || bytes.size() < at + 7) return {.indexed = true};
  return {.indexed = true,
          .has_base = false,
          .table = static_cast<uint64_t>(signed_field(bytes, at + 3, 4))};
}

// What `lea r64, [rip + x]` names.
std::optional<uint64_t> named_address(const ModuleCode& code, const Instruction& instruction) {
  const std::span<const uint8_t> bytes = code.text_from(instruction.address);
  if (instruction.length != 7 || bytes[1] != 0x8d || (bytes[2] & 0xc7) != 5) return std::nullopt;
  return instruction.end() + static_cast<uint64_t>(signed_field(bytes, 3, 4));
}

}  // namespace

const std::vector<uint64_t>& JumpTables::targets_of(uint64_t jump) {
  const std::optional<uint32_t> range = code_.range_at(jump);
  const std::optional<Instruction> instruction = code_.at(jump);
  if (!range || !instruction) return none_;
  if (code_.owner_of(*range) != function_) {
    function_ = code_.owner_of(*range);
    parts_ = code_.parts_of(function_);
    offset_targets_.clear();
    address_targets_.clear();
    collect_named_tables();
    sort_unique(offset_targets_);
    sort_unique(address_targets_);
  }
  const std::span<const uint8_t> bytes = code_.text_from(jump).first(instruction->length);
  const IndexedJump indexed = indexed_jump(bytes);
  if (indexed.indexed) {
    if (!indexed.has_base) {
      add_address_table(indexed.table);
      sort_unique(address_targets_);
    }
    return address_targets_;
  }
  return reads_offset_table(jump) ? offset_targets_ : none_;
}

bool JumpTables::reads_offset_table(uint64_t jump) const {
  for (unsigned i = 0; i < kLoadDistanceMax; ++i) {
    const std::optional<Instruction> earlier = code_.before(jump);
    if (!earlier) return false;
    jump = earlier->address;
    if (loads_offset(code_.text_from(jump).first(earlier->length))) return true;
  }
  return false;
}

bool JumpTables::is_own_instruction(uint64_t address) const {
  const auto covers = [address](const AddressRange& part) {
    return part.begin <= address && address < part.end;
  };
  if (std::none_of(parts_.begin(), parts_.end(), covers)) return false;
  return code_.at(address).has_value();
}

void JumpTables::collect_named_tables() {
  std::vector<uint64_t> tables;
  std::vector<uint64_t> labels;
  for (const AddressRange& part : parts_) {
    for (uint64_t address = part.begin; address < part.end;) {
      const std::optional<Instruction> instruction = code_.at(address);
      if (!instruction) break;
      if (const auto named = named_address(code_, *instruction)) {
        (is_own_instruction(*named) ? labels : tables).push_back(*named);
      }
      address = instruction->end();
    }
  }
  sort_unique(labels);
  sort_unique(tables);
  if (labels.size() > kLabelsMax) labels.resize(kLabelsMax);
  for (const uint64_t table : tables) {
    add_address_table(table);
    if (add_offset_table(table, table, 1)) continue;
    for (const uint64_t label : labels)
      add_offset_table(table, label, kLabelEntriesMin);
  }
}

// Entries are offsets from `base`, which is the table's start but for computed gotos. They may also
// lead to the start of another range: a cold part that nobody attached.
bool JumpTables::add_offset_table(uint64_t table, uint64_t base, size_t entries_min) {
  std::vector<uint64_t> targets;
  size_t own = 0;
  for (uint64_t i = 0; i < kTableEntriesMax; ++i) {
    const std::span<const uint8_t> entry = code_.data_at(table + 4 * i, 4);
    if (entry.empty()) break;
    const uint64_t target = base + static_cast<uint64_t>(signed_field(entry, 0, 4));
    const bool is_own = is_own_instruction(target);
    if (!is_own && !code_.range_starting_at(target)) break;
    own += is_own ? 1 : 0;
    targets.push_back(target);
  }
  if (own < entries_min) return false;
  offset_targets_.insert(offset_targets_.end(), targets.begin(), targets.end());
  return true;
}

void JumpTables::add_address_table(uint64_t table) {
  std::vector<uint64_t> targets;
  bool own = false;
  for (uint64_t i = 0; i < kTableEntriesMax; ++i) {
    const std::span<const uint8_t> entry = code_.data_at(table + 8 * i, 8);
    if (entry.empty()) break;
    const auto target = static_cast<uint64_t>(signed_field(entry, 0, 8));
    const bool is_own = is_own_instruction(target);
    if (!is_own && !code_.range_starting_at(target)) break;
    own |= is_own && target != parts_.front().begin;
    targets.push_back(target);
  }
  if (own) address_targets_.insert(address_targets_.end(), targets.begin(), targets.end());
}

}  // namespace clew::code
