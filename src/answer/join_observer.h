// SPDX-License-Identifier: Apache-2.0
// What joins by cause say of requests while they answer, for whoever draws one of them.
#pragma once

#include <cstdint>
#include <span>

#include "aggregate/value.h"
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
};

}  // namespace clew::answer
