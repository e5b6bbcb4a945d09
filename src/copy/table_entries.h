// SPDX-License-Identifier: Apache-2.0
// The entries of switch tables, as the file has them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "code/blocks.h"
#include "copy/facts.h"

namespace clew::copy {

enum class TableKind : uint8_t {
  Offsets,    // 4 bytes: the target less the table's address.
  Addresses,  // 8 bytes: the target; where the file is position-independent, by a relocation.
};

struct TableEntries {
  std::vector<uint64_t> targets;
  // What stands behind them cannot be another one: it leads nowhere near, or there is nothing.
  bool has_end = false;
};

// Of one function. Borrows both.
class TableReader {
 public:
  TableReader(const Facts& facts, uint32_t function, const code::Blocks& blocks);

  // At most `count` entries, up to the first that leads neither to a block of the function nor to
  // the start of another range.
  [[nodiscard]] TableEntries read(TableKind kind, uint64_t table, uint64_t count) const;

 private:
  // Where the word at `place` leads; nothing when it is not there.
  [[nodiscard]] std::optional<uint64_t> target_at(TableKind kind, uint64_t table,
                                                  uint64_t index) const;
  [[nodiscard]] bool is_target(uint64_t address) const;
  [[nodiscard]] bool is_near(uint64_t address) const;

  const Facts& facts_;
  const code::Blocks& blocks_;
  std::vector<code::AddressRange> parts_;
};

}  // namespace clew::copy
