// SPDX-License-Identifier: Apache-2.0
// What joins by cause say of requests while they answer, for whoever draws one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "aggregate/value.h"
#include "answer/row_batch.h"
#include "causal/graph.h"

namespace clew::answer {

class JoinObserver : public causal::GraphObserver {
 public:
  // What is said next, up to the next call, is of this row of plan::Joined::events, of a source
  // that it has roles for.
  virtual void comes(std::span<const aggregate::Value> event, causal::Thread thread) = 0;
  // It is an event of streams, in a request.
  virtual void happens(const causal::Moment& moment) = 0;
  // An event of `from` gave rows to the answer. It is the one that came.
  virtual void gives(const causal::Moment& moment, uint64_t rows) = 0;

  // What the streams of plan::Joined::stages carry, for whoever counts that.
  struct Stream {
    size_t stage = 0;
    size_t stream = 0;
  };
  // A row of the stream comes, in a request or in none.
  virtual void enters(Stream, const std::optional<causal::Moment>&) {}
  // It is kept for what follows in its request.
  virtual void keeps(Stream, const causal::Moment&, std::span<const aggregate::Value>) {}
  // So many rows that were kept are taken for one.
  virtual void unpacks(Stream, size_t) {}
  // What a row of the stage's `from` was joined to, in front of the conditions on joined rows.
  virtual void joins(size_t, const std::optional<causal::Moment>&, RowBatch&) {}
};

}  // namespace clew::answer
