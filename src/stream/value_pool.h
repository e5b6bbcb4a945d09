// SPDX-License-Identifier: Apache-2.0
// Values that rows have in common, each once: the texts and stacks of what is held by millions. A
// value has a number as long as somebody uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "aggregate/value.h"

namespace clew::stream {

class ValuePool {
 public:
  explicit ValuePool(uint64_t seed) : seed_(seed) {}

  // The value's number; one more uses it.
  uint32_t use(const aggregate::Value& value);
  // One less does.
  void leave(uint32_t number);
  [[nodiscard]] const aggregate::Value& at(uint32_t number) const { return all_[number].value; }
  // None: nobody uses it.
  [[nodiscard]] std::optional<uint32_t> find(const aggregate::Value& value) const;
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    aggregate::Value value;
    uint64_t hash = 0;
    uint64_t uses = 0;
  };

  [[nodiscard]] std::optional<uint32_t> find(const aggregate::Value& value, uint64_t hash) const;

  uint64_t seed_;
  std::vector<Entry> all_;
  std::vector<uint32_t> free_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
  size_t bytes_ = 0;
};

}  // namespace clew::stream
