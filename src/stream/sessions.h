// SPDX-License-Identifier: Apache-2.0
// Windows that a gap ends (window.h): of each key those that may still grow, or be joined by late
// data.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "aggregate/accumulator.h"
#include "stream/window.h"

namespace clew::stream {

class Sessions final : public Windows {
 public:
  Sessions(const WindowShape& shape, aggregate::TableSchema schema);

  void add(const aggregate::Table& partial) override;
  std::vector<Given> finish() override;

 private:
  struct Session {
    int64_t first_ns = 0;
    int64_t last_ns = 0;
    std::vector<uint64_t> cells{};
    uint64_t version = 0;  // Of what was given of it, or of a part.
    bool has_changed = true;
  };
  // In the order of their times, each further from the next than the gap.
  using OfKey = std::vector<Session>;
  using ByKey = std::map<aggregate::Key, OfKey, aggregate::KeyLess>;
  using ByVersion = std::map<uint64_t, Given>;

  std::vector<Given> give() override;
  void join(OfKey& sessions, Session session);
  void give_some(const aggregate::Key& key, OfKey& sessions, bool all, ByVersion& given) const;
  void give_one(const aggregate::Key& key, Session& session, ByVersion& given) const;
  [[nodiscard]] bool is_over(const Session& session) const;
  [[nodiscard]] bool is_done(const Session& session) const;

  aggregate::GroupShape group_;
  ByKey sessions_;
};

}  // namespace clew::stream
