// SPDX-License-Identifier: Apache-2.0
// All blocks in order, then jumps that grow until each reaches its target.
#include "copy/layout.h"

#include <algorithm>

#include "base/assert.h"
#include "code/decode.h"

namespace clew::copy {

namespace {

using code::Block;
using code::Flow;
using code::Instruction;

// Functions keep their place in a line of the cache, blocks behind gaps theirs in half a line: what
// compilers align for, and no more, as gaps may be long.
constexpr uint64_t kFunctionAlignment = 64;
constexpr uint64_t kBlockAlignment = 32;

// jmp rel32 and jcc rel32, of a short form with that many bytes of prefixes and opcode.
uint8_t long_size(uint8_t opcode, uint8_t in_front) {
  return static_cast<uint8_t>(in_front + (opcode == 0xeb || opcode == 0xe9 ? 1 : 2) + 4);
}

// Where control goes behind the block's last instruction, when it is not sent elsewhere. Behind a
// call that does not come back, what stands there: should it do so all the same, all is as it was.
std::optional<uint64_t> runs_on_to(const Facts& facts, const code::Blocks& blocks,
                                   const Block& block) {
  const std::optional<Instruction> last = facts.code.at(block.last);
  CLEW_ASSERT(last.has_value());
  const auto edges = blocks.edges_of(block);
  switch (last->flow) {
    case Flow::Call:
    case Flow::IndirectCall:
      return edges.empty() ? block.end : edges.front().target;
    case Flow::Conditional:
      CLEW_ASSERT(edges.size() == 2);
      return edges[1].target;
    case Flow::Next:
    case Flow::Nop:
      CLEW_ASSERT(edges.size() == 1);
      return edges.front().target;
    case Flow::Jump:
    case Flow::IndirectJump:
    case Flow::Return:
    case Flow::Trap:
    case Flow::Int3:
    case Flow::System:
    case Flow::Bad:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Layout::Layout(const Facts& facts, std::span<const Proved> proved, const Insertions& insertions,
               uint64_t address)
    : facts_(facts), insertions_(insertions), address_(address) {
  std::vector<OwnBlock> all;
  for (const Proved& owner : proved) {
    const bool carries =
        insertions.carriers.contains(facts.code.functions()[owner.function].address);
    for (const Block& block : owner.blocks.blocks())
      all.push_back({&block, &owner, carries});
  }
  std::sort(all.begin(), all.end(),
            [](const OwnBlock& a, const OwnBlock& b) { return a.block->begin < b.block->begin; });
  for (size_t i = 0; i < all.size(); ++i) {
    add_block(all[i]);
    add_passed(all[i]);
    const uint64_t next = i + 1 < all.size() ? all[i + 1].block->begin : 0;
    CLEW_ASSERT(next == 0 || next >= all[i].block->end);
    add_run_on(all[i], next);
  }
  while (place()) {
  }
}

void Layout::add_block(const OwnBlock& own) {
  const uint64_t begin = own.block->begin;
  const bool is_behind_gap = items_.empty() || items_.back().form == ItemForm::RunOn ||
                             items_.back().original + items_.back().length != begin;
  if (is_behind_gap) items_.push_back({.original = begin, .form = ItemForm::Gap});
  for (auto at = facts_.code.at(begin); at && at->address < own.block->end;
       at = facts_.code.at(at->end())) {
    if (at->address == begin) add_entry(begin);
    add_before(at->address);
    items_.push_back(item_of(*at, *own.owner));
    items_.back().past = insertions_.leaping.contains(at->address) ? Past::Everything : own.past();
    add_stub(items_.back());
  }
}

// A jump that is taken goes by what is inserted on its way.
void Layout::add_stub(Item& jump) {
  if (jump.form != ItemForm::Jump && jump.form != ItemForm::CountJump) return;
  const auto on_way = insertions_.taken.find(jump.original);
  if (on_way == insertions_.taken.end()) return;
  jump.stub = static_cast<uint32_t>(stubs_.size());
  const size_t size = on_way->second.size() + kJumpBytes;
  stubs_.push_back({.branch = jump.original,
                    .target = jump.target,
                    .past = jump.past,
                    .size = static_cast<uint32_t>(size)});
}

void Layout::add_before(uint64_t original) {
  const auto found = insertions_.before.find(original);
  if (found == insertions_.before.end()) return;
  CLEW_ASSERT(found->second.size() <= kInsertionBytesMax);
  items_.push_back({.original = original,
                    .form = ItemForm::Before,
                    .size = static_cast<uint8_t>(found->second.size())});
}

void Layout::add_entry(uint64_t original) {
  const auto found = insertions_.entry.find(original);
  if (found == insertions_.entry.end()) return;
  CLEW_ASSERT(found->second.size() <= kInsertionBytesMax);
  items_.push_back({.original = original,
                    .form = ItemForm::Entry,
                    .size = static_cast<uint8_t>(found->second.size())});
}

void Layout::add_passed(const OwnBlock& own) {
  const auto found = insertions_.passed.find(own.block->last);
  if (found == insertions_.passed.end()) return;
  CLEW_ASSERT(found->second.size() <= kInsertionBytesMax);
  items_.push_back({.original = own.block->end,
                    .form = ItemForm::Passed,
                    .size = static_cast<uint8_t>(found->second.size())});
}

void Layout::add_run_on(const OwnBlock& own, uint64_t next) {
  const auto target = runs_on_to(facts_, own.owner->blocks, *own.block);
  if (!target) return;
  // What is passed by is not run into.
  const bool runs_over = insertions_.running_over.contains(own.block->last);
  const bool leaps = runs_over || (own.carries && insertions_.entry.contains(next));
  if (*target == next && next == own.block->end && !leaps) return;
  items_.push_back(
      {.original = own.block->end, .target = *target, .form = ItemForm::RunOn, .size = kJumpBytes});
  items_.back().past = runs_over ? Past::Everything : own.past();
}

Item Layout::item_of(const Instruction& at, const Proved& owner) const {
  const std::span<const uint8_t> bytes = facts_.code.text_from(at.address).first(at.length);
  Item item{.original = at.address, .length = at.length, .size = at.length};
  const bool is_direct =
      at.flow == Flow::Jump || at.flow == Flow::Conditional || at.flow == Flow::Call;
  if (is_direct) {
    const uint8_t opcode = bytes[code::opcode_offset(bytes)];
    const bool counts = opcode >= 0xe0 && opcode <= 0xe3;
    item.form =
        at.flow == Flow::Call ? ItemForm::Call : (counts ? ItemForm::CountJump : ItemForm::Jump);
    item.target = insertions_.target_of(at.address, code::branch_target(facts_.code, at));
    const auto decoded = code::decode(bytes);
    item.was_short = decoded && decoded->immediate_size == 1;
    return item;
  }
  const auto decoded = code::decode(bytes);
  CLEW_ASSERT(decoded.has_value());
  const std::vector<TableName>& names = owner.switches.names;
  const auto name = std::lower_bound(
      names.begin(), names.end(), at.address,
      [](const TableName& one, uint64_t address) { return one.instruction < address; });
  if (name != names.end() && name->instruction == at.address) {
    item.form = name->is_absolute ? ItemForm::AbsoluteTable : ItemForm::TableName;
    item.target = owner.switches.tables[name->table].address;
    item.field = name->field_offset;
  } else if (decoded->rip_relative) {
    item.form = ItemForm::RipRelative;
    item.field = decoded->displacement_offset;
    item.target = at.end() + static_cast<uint64_t>(code::signed_field(bytes, item.field, 4));
  }
  return item;
}

bool Layout::is_short(const Item& item) {
  return item.was_short && item.size == item.length;
}

// Gives all items their places. True when a jump had to grow, and so places have changed.
bool Layout::place() {
  uint32_t offset = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    item.offset = offset;
    if (item.form == ItemForm::Gap) item.size = static_cast<uint8_t>(gap_before(item, offset));
    offset += item.size;
  }
  for (Stub& stub : stubs_) {
    stub.offset = offset;
    offset += stub.size;
  }
  code_size_ = offset;
  bool grows = false;
  for (Item& item : items_) {
    const bool jumps = item.form == ItemForm::Jump || item.form == ItemForm::CountJump;
    if (!jumps || !is_short(item) || reaches_shortly(item)) continue;
    const std::span<const uint8_t> bytes = facts_.code.text_from(item.original).first(item.length);
    const auto in_front = static_cast<uint8_t>(code::opcode_offset(bytes));
    item.size = item.form == ItemForm::CountJump
                    ? static_cast<uint8_t>(in_front + kFarCountJumpBytes)
                    : long_size(bytes[in_front], in_front);
    grows = true;
  }
  return grows;
}

uint32_t Layout::gap_before(const Item& next, uint32_t offset) const {
  const bool starts = facts_.code.range_starting_at(next.original).has_value();
  const uint64_t alignment = starts ? kFunctionAlignment : kBlockAlignment;
  return static_cast<uint32_t>((next.original - (address_ + offset)) % alignment);
}

bool Layout::reaches_shortly(const Item& item) const {
  const uint64_t end = address_ + item.offset + item.length;
  const auto distance = static_cast<int64_t>(target_of(item) - end);
  return distance >= INT8_MIN && distance <= INT8_MAX;
}

uint64_t Layout::target_of(const Item& item) const {
  return item.stub == kNoStub ? resolve(item.target, item.past)
                              : address_ + stubs_[item.stub].offset;
}

uint64_t Layout::resolve(uint64_t target, Past past) const {
  const auto item = item_at(target, past);
  return item ? address_ + items_[*item].offset : target;
}

std::optional<size_t> Layout::item_at(uint64_t original, Past past) const {
  auto at =
      std::lower_bound(items_.begin(), items_.end(), original,
                       [](const Item& one, uint64_t address) { return one.original < address; });
  const auto is_passed_by = [past](ItemForm form) {
    if (form == ItemForm::Entry) return past != Past::Nothing;
    if (form == ItemForm::Before) return past == Past::Everything;
    return form == ItemForm::Gap || form == ItemForm::RunOn || form == ItemForm::Passed;
  };
  while (at != items_.end() && at->original == original && is_passed_by(at->form))
    ++at;
  if (at == items_.end() || at->original != original) return std::nullopt;
  return static_cast<size_t>(at - items_.begin());
}

}  // namespace clew::copy
