// SPDX-License-Identifier: Apache-2.0
// What a joined query carries, counted while it is answered: events, tuples and their bytes by
// stream and by request, and what each condition on joined rows leaves out.
//
// Bytes are those of the values that are kept: eight for a number, a text's own length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "answer/join_observer.h"
#include "answer/operator.h"
#include "plan/joined.h"

namespace clew::answer {

struct StreamTally {
  uint64_t events = 0;
  uint64_t outside = 0;    // Of them: in no request.
  uint64_t kept = 0;       // Tuples.
  uint64_t bytes = 0;      // Of these,
  uint64_t bytes_max = 0;  // and of the largest.
  uint64_t unpacked = 0;   // How often one was taken for a row.
};

struct StageTally {
  std::vector<StreamTally> streams;
  uint64_t unjoined = 0;          // Events of `from`, in a request, that nothing was there for.
  uint64_t joined = 0;            // Rows, in front of the conditions on them.
  std::vector<uint64_t> dropped;  // By JoinStage::behind: the first that is not true.
};

// Of all that requests have kept at any time.
struct RequestTally {
  uint64_t requests = 0;
  uint64_t tuples_max = 0;  // Of one request.
  uint64_t bytes_max = 0;
};

class JoinTally final : public JoinObserver {
 public:
  explicit JoinTally(const plan::Joined& joined);  // Borrowed.

  [[nodiscard]] const std::vector<StageTally>& stages() const { return stages_; }
  [[nodiscard]] const RequestTally& requests() const { return requests_; }

  void enters(Stream stream, const std::optional<causal::Moment>& moment) override;
  void keeps(Stream stream, const causal::Moment& moment,
             std::span<const aggregate::Value> values) override;
  void unpacks(Stream stream, size_t rows) override;
  void joins(size_t stage, const std::optional<causal::Moment>& moment, RowBatch& rows) override;
  void begins(causal::Thread, const causal::Moment&) override { ++requests_.requests; }
  void is_gone(uint64_t request, bool) override { open_.erase(request); }

  void comes(std::span<const aggregate::Value>, causal::Thread) override {}
  void happens(const causal::Moment&) override {}
  void gives(const causal::Moment&, uint64_t) override {}
  void puts(const causal::ContextKey&, const causal::Moment&) override {}
  void goes_on(causal::Thread, const causal::Moment&, const Crossing&) override {}
  void leaves(const causal::Moment&) override {}
  void comes_back(const causal::Moment&) override {}
  void comes_together(const causal::Moment&) override {}

 private:
  struct Carried {
    uint64_t tuples = 0;
    uint64_t bytes = 0;
  };
  [[nodiscard]] StreamTally& at(Stream stream);

  const plan::Joined& joined_;
  std::vector<StageTally> stages_;
  RequestTally requests_;
  std::unordered_map<uint64_t, Carried> open_;  // By request.
  RowBindings bindings_{RowLayout{}};
};

}  // namespace clew::answer
