// SPDX-License-Identifier: Apache-2.0
// From a layout to bytes.
#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "base/assert.h"
#include "code/decode.h"
#include "code/opcodes.h"
#include "copy/layout.h"
#include "copy/module_copy.h"

namespace clew::copy {

namespace {

using code::kInt3;
using code::kJumpRel32;
using code::kJumpRel8;
constexpr uint64_t kTableAlignment = 64;

class CopyWriter {
 public:
  CopyWriter(const Facts& facts, std::span<const Proved> proved, const Insertions& insertions,
             uint64_t address)
      : facts_(facts),
        proved_(proved),
        insertions_(insertions),
        layout_(facts, proved, insertions, address) {
    result_.address = address;
  }

  Expected<ModuleCopy> run() {
    place_tables();
    for (const Item& item : layout_.items())
      CLEW_TRY(put(item));
    for (const Stub& stub : layout_.stubs())
      CLEW_TRY(put_stub(stub));
    CLEW_ASSERT(result_.bytes.size() == layout_.code_size());
    result_.code_size = layout_.code_size();
    CLEW_TRY(put_tables());
    for (const Proved& one : proved_) {
      const uint64_t original = facts_.code.functions()[one.function].address;
      result_.functions.push_back({one.function, original, layout_.resolve(original)});
    }
    std::sort(result_.functions.begin(), result_.functions.end(),
              [](const auto& a, const auto& b) { return a.original < b.original; });
    return std::move(result_);
  }

 private:
  [[nodiscard]] uint32_t offset() const { return static_cast<uint32_t>(result_.bytes.size()); }
  [[nodiscard]] uint64_t here() const { return result_.address + result_.bytes.size(); }

  // Each table once, also where functions share one.
  void place_tables() {
    uint64_t at = round_up(result_.address + layout_.code_size());
    for (const Proved& one : proved_) {
      for (const SwitchTable& table : one.switches.tables) {
        const auto [known, is_new] = tables_.try_emplace(table.address, Placed{&table, at});
        if (!is_new) continue;
        at = round_up(at + table.targets.size() * entry_size(table.kind));
      }
    }
  }

  static uint64_t round_up(uint64_t address) {
    return (address + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
  }
  static uint64_t entry_size(TableKind kind) { return kind == TableKind::Offsets ? 4 : 8; }

  Expected<void> put(const Item& item) {
    if (item.form == ItemForm::Gap) {
      result_.bytes.insert(result_.bytes.end(), item.size, kInt3);
      return {};
    }
    result_.pcs.push_back({offset(), item.original, kind_of(item)});
    const std::span<const uint8_t> bytes = facts_.code.text_from(item.original).first(item.length);
    if (kind_of(item) == PcKind::Instruction) last_ = item.original;
    switch (item.form) {
      case ItemForm::Plain:
        result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.end());
        return {};
      case ItemForm::RipRelative:
        return put_displaced(item, bytes, item.target);
      case ItemForm::TableName:
        return put_displaced(item, bytes, tables_.at(item.target).copy);
      case ItemForm::AbsoluteTable:
        return put_absolute(item, bytes);
      case ItemForm::Call:
      case ItemForm::Jump:
        return put_branch(item, bytes);
      case ItemForm::CountJump:
        return put_count_jump(item, bytes);
      case ItemForm::RunOn:
        result_.bytes.push_back(kJumpRel32);
        return put_distance(item.target, item.past);
      case ItemForm::Before:
        return put_inserted(insertions_.before.at(item.original));
      case ItemForm::Passed:
        return put_inserted(insertions_.passed.at(last_));
      case ItemForm::Entry:
        return put_inserted(insertions_.entry.at(item.original));
      case ItemForm::Gap:
        break;
    }
    return {};
  }

  static PcKind kind_of(const Item& item) {
    if (item.form == ItemForm::RunOn) return PcKind::RunsOn;
    const bool is_inserted = item.form == ItemForm::Before || item.form == ItemForm::Passed ||
                             item.form == ItemForm::Entry;
    return is_inserted ? PcKind::Inserted : PcKind::Instruction;
  }

  Expected<void> put_inserted(const std::vector<uint8_t>& bytes) {
    result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.end());
    return {};
  }

  Expected<void> put_stub(const Stub& stub) {
    CLEW_ASSERT(offset() == stub.offset);
    result_.pcs.push_back({offset(), stub.target, PcKind::Inserted});
    CLEW_TRY(put_inserted(insertions_.taken.at(stub.branch)));
    result_.pcs.push_back({offset(), stub.target, PcKind::RunsOn});
    result_.bytes.push_back(kJumpRel32);
    return put_distance(stub.target, stub.past);
  }

  Expected<void> put_displaced(const Item& item, std::span<const uint8_t> bytes, uint64_t target) {
    const uint32_t field = offset() + item.field;
    result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.end());
    if (item.form == ItemForm::RipRelative) result_.fixups.push_back({field, FixupKind::Outward});
    return set_distance(field, target, here());
  }

  Expected<void> put_absolute(const Item& item, std::span<const uint8_t> bytes) {
    const uint32_t field = offset() + item.field;
    result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.end());
    const uint64_t table = tables_.at(item.target).copy;
    if (table > INT32_MAX) return far();
    result_.fixups.push_back({field, FixupKind::Absolute32});
    set<uint32_t>(field, static_cast<uint32_t>(table));
    return {};
  }

  Expected<void> put_branch(const Item& item, std::span<const uint8_t> bytes) {
    const unsigned in_front = code::opcode_offset(bytes);
    if (item.size == item.length) {
      const auto decoded = code::decode(bytes);
      CLEW_ASSERT(decoded && decoded->immediate_offset != 0);
      result_.bytes.insert(result_.bytes.end(), bytes.begin(),
                           bytes.begin() + decoded->immediate_offset);
      if (decoded->immediate_size == 1) return put_short_distance(item);
      return put_way(item);
    }
    result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.begin() + in_front);
    const uint8_t opcode = bytes[in_front];
    if (opcode == kJumpRel8) {
      result_.bytes.push_back(kJumpRel32);
    } else {
      result_.bytes.push_back(0x0f);
      result_.bytes.push_back(static_cast<uint8_t>(opcode + 0x10));  // 70+cc to 0f 80+cc
    }
    return put_way(item);
  }

  // loop taken ; jmp over ; taken: jmp target ; over:
  Expected<void> put_count_jump(const Item& item, std::span<const uint8_t> bytes) {
    const unsigned in_front = code::opcode_offset(bytes);
    result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.begin() + in_front + 1);
    if (Layout::is_short(item)) return put_short_distance(item);
    result_.bytes.insert(result_.bytes.end(), {2, kJumpRel8, kJumpBytes, kJumpRel32});
    return put_way(item);
  }

  Expected<void> put_short_distance(const Item& item) {
    const auto distance = static_cast<int64_t>(layout_.target_of(item) - (here() + 1));
    CLEW_ASSERT(distance >= INT8_MIN && distance <= INT8_MAX);
    result_.bytes.push_back(static_cast<uint8_t>(distance));
    return {};
  }

  // To where the jump leads when it is taken, by a stub that may be on the way.
  Expected<void> put_way(const Item& item) {
    if (item.stub == kNoStub) return put_distance(item.target, item.past);
    const uint32_t field = offset();
    result_.bytes.resize(field + 4);
    return set_distance(field, layout_.target_of(item), here());
  }

  Expected<void> put_distance(uint64_t target, Past past) {
    const uint32_t field = offset();
    result_.bytes.resize(field + 4);
    if (!layout_.is_copied(target)) result_.fixups.push_back({field, FixupKind::Outward});
    return set_distance(field, layout_.resolve(target, past), here());
  }

  Expected<void> set_distance(uint32_t field, uint64_t target, uint64_t from) {
    const auto distance = static_cast<int64_t>(target - from);
    if (distance < INT32_MIN || distance > INT32_MAX) return far();
    set<int32_t>(field, static_cast<int32_t>(distance));
    return {};
  }

  template <typename Word>
  void set(uint32_t field, Word value) {
    std::memcpy(result_.bytes.data() + field, &value, sizeof(value));
  }

  static tl::unexpected<Error> far() {
    return fail(ErrorCode::Limit, "a copy of the module's functions would be too far from it");
  }

  Expected<void> put_tables() {
    std::vector<Placed> order;
    order.reserve(tables_.size());
    for (const auto& [address, placed] : tables_)
      order.push_back(placed);
    std::sort(order.begin(), order.end(),
              [](const Placed& a, const Placed& b) { return a.copy < b.copy; });
    for (const Placed& placed : order) {
      const SwitchTable& table = *placed.table;
      result_.bytes.resize(placed.copy - result_.address);
      result_.tables.push_back(
          {table.address, placed.copy, table.kind, static_cast<uint32_t>(table.targets.size())});
      for (const uint64_t target : table.targets)
        CLEW_TRY(put_entry(table.kind, placed.copy, target));
    }
    return {};
  }

  Expected<void> put_entry(TableKind kind, uint64_t table, uint64_t target) {
    const uint32_t field = offset();
    result_.bytes.resize(field + entry_size(kind));
    const bool is_copied = layout_.is_copied(target);
    if (kind == TableKind::Offsets) {
      if (!is_copied) result_.fixups.push_back({field, FixupKind::Outward});
      return set_distance(field, layout_.resolve(target), table);
    }
    result_.fixups.push_back({field, FixupKind::Absolute64, !is_copied});
    set<uint64_t>(field, layout_.resolve(target));
    return {};
  }

  struct Placed {
    const SwitchTable* table = nullptr;
    uint64_t copy = 0;
  };

  const Facts& facts_;
  std::span<const Proved> proved_;
  const Insertions& insertions_;
  Layout layout_;
  uint64_t last_ = 0;                  // The instruction that was put last.
  std::map<uint64_t, Placed> tables_;  // By original.
  ModuleCopy result_;
};

}  // namespace

Expected<ModuleCopy> write_copy(const Facts& facts, std::span<const Proved> proved,
                                const Insertions& insertions, uint64_t address) {
  return CopyWriter(facts, proved, insertions, address).run();
}

std::optional<uint64_t> ModuleCopy::function_copy(uint64_t original) const {
  const auto found = std::lower_bound(
      functions.begin(), functions.end(), original,
      [](const CopiedFunction& one, uint64_t value) { return one.original < value; });
  if (found == functions.end() || found->original != original) return std::nullopt;
  return found->copy;
}

CopyMap::CopyMap(const ModuleCopy& copy) : address_(copy.address) {
  for (const CopiedPc& pc : copy.pcs) {
    if (pc.kind == PcKind::Instruction) by_original_.push_back(pc);
  }
  std::sort(by_original_.begin(), by_original_.end(),
            [](const CopiedPc& a, const CopiedPc& b) { return a.original < b.original; });
}

std::optional<uint64_t> CopyMap::copy_of(uint64_t original) const {
  const auto found =
      std::lower_bound(by_original_.begin(), by_original_.end(), original,
                       [](const CopiedPc& one, uint64_t value) { return one.original < value; });
  if (found == by_original_.end() || found->original != original) return std::nullopt;
  return address_ + found->offset;
}

std::optional<uint64_t> ModuleCopy::original_of(uint64_t at) const {
  if (at < address || at - address >= code_size) return std::nullopt;
  const auto offset = static_cast<uint32_t>(at - address);
  const auto after =
      std::upper_bound(pcs.begin(), pcs.end(), offset,
                       [](uint32_t value, const CopiedPc& one) { return value < one.offset; });
  if (after == pcs.begin()) return std::nullopt;
  return (after - 1)->original;
}

}  // namespace clew::copy
