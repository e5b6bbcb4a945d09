// SPDX-License-Identifier: Apache-2.0
// Which instructions stand where in a copy: in the order of the originals, each as long as it must
// be. Internal to copy/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "copy/facts.h"
#include "copy/insertions.h"
#include "copy/prove.h"

namespace clew::copy {

// How an item becomes bytes.
enum class ItemForm : uint8_t {
  Plain,          // The same bytes.
  RipRelative,    // Its displacement leads to `target`.
  TableName,      // The same; `target` is a table.
  AbsoluteTable,  // Its displacement is a table's address, which is `target`.
  Jump,           // jmp, jcc: rel8 or rel32.
  CountJump,      // loop, jrcxz.
  Call,           // call rel32
  RunOn,          // No instruction: a jmp to `target`, to which the one in front of it runs on.
  Gap,            // Nothing gets here. What follows is aligned as its original is.
  Before,         // What is inserted in front of the instruction at `original`,
  Passed,         // or behind the jump or call that ends there, when control runs on,
  Entry,          // or in front of a function, for who comes from outside.
};

inline constexpr uint32_t kNoStub = UINT32_MAX;

struct Item {
  uint64_t original = 0;  // The instruction's; of a RunOn, where it would be.
  uint64_t target = 0;    // The original's.
  uint32_t offset = 0;    // In the copy.
  ItemForm form = ItemForm::Plain;
  uint8_t length = 0;         // Of the original.
  uint8_t size = 0;           // In the copy. Of a Gap, how many bytes it leaves, up to 63.
  uint8_t field = 0;          // Where the displacement is, in the original.
  bool was_short = false;     // A jump's original has a displacement of one byte.
  Past past = Past::Nothing;  // Of a jump, a call or a RunOn.
  uint32_t stub = kNoStub;  // Of a Jump or CountJump: what it passes on its way, when it is taken.
};

// What is inserted where a jump is taken: bytes, and a jmp to its target. Behind all else.
struct Stub {
  uint64_t branch = 0;  // Originals, both.
  uint64_t target = 0;
  Past past = Past::Nothing;
  uint32_t offset = 0;
  uint32_t size = 0;
};

// jmp rel32 behind a RunOn, and the forms that CountJump becomes when its target is far.
inline constexpr uint8_t kJumpBytes = 5;
inline constexpr uint8_t kFarCountJumpBytes = 9;  // Behind its own prefixes and opcode.

class Layout {
 public:
  // Borrows all.
  Layout(const Facts& facts, std::span<const Proved> proved, const Insertions& insertions,
         uint64_t address);

  // By original, and so by offset.
  [[nodiscard]] const std::vector<Item>& items() const { return items_; }
  [[nodiscard]] const std::vector<Stub>& stubs() const { return stubs_; }
  [[nodiscard]] uint32_t code_size() const { return code_size_; }
  // Where a jump leads when it is taken.
  [[nodiscard]] uint64_t target_of(const Item& item) const;
  // The copy's address of what is led to, with what is inserted in front of it: the item's, or the
  // original.
  [[nodiscard]] uint64_t resolve(uint64_t target, Past past = Past::Nothing) const;
  // Is there a copy of the instruction?
  [[nodiscard]] bool is_copied(uint64_t target) const {
    return item_at(target, Past::Everything).has_value();
  }
  // Whether a Jump or CountJump is written in its short form.
  [[nodiscard]] static bool is_short(const Item& item);

 private:
  // With what an item needs of the function that it is a part of.
  struct OwnBlock {
    const code::Block* block = nullptr;
    const Proved* owner = nullptr;
    bool carries = false;

    [[nodiscard]] Past past() const { return carries ? Past::Entry : Past::Nothing; }
  };
  void add_block(const OwnBlock& own);
  void add_run_on(const OwnBlock& own, uint64_t next);
  void add_before(uint64_t original);
  void add_entry(uint64_t original);
  void add_stub(Item& jump);
  void add_passed(const OwnBlock& own);
  [[nodiscard]] Item item_of(const code::Instruction& at, const Proved& owner) const;
  bool place();
  [[nodiscard]] uint32_t gap_before(const Item& next, uint32_t offset) const;
  [[nodiscard]] bool reaches_shortly(const Item& item) const;
  [[nodiscard]] std::optional<size_t> item_at(uint64_t original, Past past) const;

  const Facts& facts_;
  const Insertions& insertions_;
  uint64_t address_;
  std::vector<Item> items_;
  std::vector<Stub> stubs_;
  uint32_t code_size_ = 0;
};

}  // namespace clew::copy
