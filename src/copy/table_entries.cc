// SPDX-License-Identifier: Apache-2.0
#include "copy/table_entries.h"

#include <algorithm>
#include <span>

#include "code/decode.h"
#include "code/jump_tables.h"

namespace clew::copy {

TableReader::TableReader(const Facts& facts, uint32_t function, const code::Blocks& blocks)
    : facts_(facts), blocks_(blocks), parts_(facts.code.parts_of(function)) {}

TableEntries TableReader::read(TableKind kind, uint64_t table, uint64_t count) const {
  TableEntries entries;
  while (entries.targets.size() < std::min<uint64_t>(count, code::kTableEntriesMax)) {
    const std::optional<uint64_t> target = target_at(kind, table, entries.targets.size());
    if (target && is_target(*target)) {
      entries.targets.push_back(*target);
      continue;
    }
    entries.has_end = !target || !is_near(*target);
    break;
  }
  return entries;
}

std::optional<uint64_t> TableReader::target_at(TableKind kind, uint64_t table,
                                               uint64_t index) const {
  if (kind == TableKind::Offsets) {
    const std::span<const uint8_t> entry = facts_.code.data_at(table + 4 * index, 4);
    if (entry.empty()) return std::nullopt;
    return table + static_cast<uint64_t>(code::signed_field(entry, 0, 4));
  }
  const uint64_t place = table + 8 * index;
  if (facts_.is_position_independent) {
    const auto slot = std::lower_bound(
        facts_.slots.begin(), facts_.slots.end(), place,
        [](const target::CodePointerSlot& one, uint64_t at) { return one.slot_address < at; });
    if (slot == facts_.slots.end() || slot->slot_address != place) return std::nullopt;
    return slot->value;
  }
  const std::span<const uint8_t> entry = facts_.code.data_at(place, 8);
  if (entry.empty()) return std::nullopt;
  return static_cast<uint64_t>(code::signed_field(entry, 0, 8));
}

bool TableReader::is_target(uint64_t address) const {
  const std::optional<uint32_t> block = blocks_.block_at(address);
  if (block) return blocks_.blocks()[*block].begin == address;
  return facts_.code.range_starting_at(address).has_value();
}

// Also right behind a part: where a compiler sends what cannot be.
bool TableReader::is_near(uint64_t address) const {
  return std::any_of(parts_.begin(), parts_.end(), [address](const code::AddressRange& part) {
    return part.begin <= address && address <= part.end;
  });
}

}  // namespace clew::copy
