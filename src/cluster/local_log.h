// SPDX-License-Identifier: Apache-2.0
// A log and the keys of the bus inside one process. No locks: their hub has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cluster/bus.h"

namespace clew::cluster {

class LocalLog {
 public:
  // `number`: no other one has it.
  LocalLog(std::string name, std::string pattern, uint64_t most_bytes, uint64_t number)
      : name_(std::move(name)),
        pattern_(std::move(pattern)),
        most_bytes_(most_bytes),
        number_(number) {}

  [[nodiscard]] const std::string& pattern() const { return pattern_; }
  void set_most_bytes(uint64_t most_bytes) { most_bytes_ = most_bytes; }

  // An empty `id` is none.
  Expected<uint64_t> append(std::string_view subject, std::string_view id,
                            std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<Entry> read(uint64_t after, size_t most) const;
  [[nodiscard]] LogEnds ends() const {
    return {.log = number_, .first = last_ - entries_.size() + 1, .last = last_};
  }
  void forget(uint64_t up_to);
  // The newest ones are gone, and their numbers are free again. Ids may outlive them.
  void lose_end(uint64_t entries, bool knows_ids);

 private:
  void remember(std::string_view id);

  std::string name_;
  std::string pattern_;
  uint64_t most_bytes_;
  uint64_t number_;
  uint64_t bytes_ = 0;
  uint64_t last_ = 0;
  std::deque<Entry> entries_;  // The last of them is last_, without gaps.
  // The latest ids, also of what is forgotten: a number of them is this bus' "while".
  std::unordered_map<std::string, uint64_t> sequences_;
  std::deque<std::string> ids_;
};

class LocalKeys {
 public:
  [[nodiscard]] std::optional<Revised> get(std::string_view key) const;
  Expected<uint64_t> put(std::string_view key, std::span<const std::byte> bytes, uint64_t revision);
  // As before the last so many puts.
  void lose_end(uint64_t puts);

 private:
  struct Before {
    std::string key;
    std::optional<Revised> value;
  };

  uint64_t last_ = 0;
  std::map<std::string, Revised, std::less<>> values_;
  std::deque<Before> before_;  // What the latest puts have replaced.
};

}  // namespace clew::cluster
