// SPDX-License-Identifier: Apache-2.0
// Joins by cause, over the rows of plan::Joined::events in the order of their times: each joined
// row has one event of each stream, and those that are joined happened before the others in the
// same request (causal/graph.h). The stages of the plan behind the join, up to the selection or the
// groups, are here, too.
//
// Rows stay until their request is over. Their number is bounded: where there are too many, the
// least recently used request is forgotten, so that what is joined has all that happened before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "aggregate/table.h"
#include "aggregate/value.h"
#include "answer/join_observer.h"
#include "answer/join_rest.h"
#include "answer/row_batch.h"
#include "answer/row_joiner.h"
#include "causal/graph.h"
#include "causal/message_keys.h"
#include "causal/sockets.h"
#include "plan/joined.h"

namespace clew::answer {

struct JoinLimits {
  size_t kept = 4'000'000;  // Rows of joined streams, over all requests.
  size_t rows = 100'000;    // That one event may give.
  size_t batch = 4'096;     // After so many they are taken away.
  causal::GraphLimits graph{};
};

struct JoinCounts {
  causal::GraphCounts graph{};
  causal::SocketCounts sockets{};
  uint64_t cut = 0;         // Events that would have given too many rows.
  uint64_t skipped = 0;     // Events beside lost ones.
  uint64_t bad_tokens = 0;  // Of messages, that were none.
  uint64_t unjoined = 0;  // Events of a request in which nothing was there to be joined with them.
};

class Joins final : public RowJoiner {
 public:
  // Borrows `joined`, and the profiles and the observer, which may be null.
  explicit Joins(const plan::Joined& joined, causal::Profiles* profiles, JoinLimits limits = {},
                 JoinObserver* observer = nullptr);
  ~Joins() override;

  // All that happens from now on comes.
  void begin(causal::SocketNumbers numbers) { sockets_.begin(std::move(numbers)); }
  size_t take(RowBatch& events, Part part, RowBatch& rows) override;
  [[nodiscard]] int64_t looks_ahead_ns() const override { return looks_ahead_ns_; }
  // Some events in the place of these rows are lost, edges among them perhaps: they are joined with
  // nothing, and what came before them is not what later ones go on from. Unknown is better than
  // wrong.
  void skip(const RowBatch& events);
  [[nodiscard]] const aggregate::Table& counted() const override;
  void forget_counted() override;
  [[nodiscard]] uint64_t passed() const override;
  [[nodiscard]] JoinCounts counts() const;

 private:
  using Values = std::span<const aggregate::Value>;
  // What a joined stream has brought, in one segment of a request.
  struct Kept {
    uint64_t step = 0;
    uint64_t number = 0;
    uint64_t order = 0;  // Of its coming: between equal numbers.
    std::vector<aggregate::Value> values;
  };
  using BySegment = std::map<uint32_t, std::vector<Kept>>;
  // The groups of what had happened before an event, which most often is part of what happens
  // before the next one: the first rows of some segments, so many.
  struct Counted {
    std::map<uint32_t, size_t> taken;
    std::optional<aggregate::Table> table;
  };
  struct CountedBefore {
    std::map<uint32_t, Counted> segments;  // By the event's.
    uint32_t last = 0;
  };
  struct Request {
    std::vector<BySegment> streams;
    std::map<size_t, CountedBefore> counted;  // By stream.
  };
  // A row in the making.
  struct Joining {
    std::vector<aggregate::Value> row;
    std::vector<std::optional<causal::Moment>> moments;  // By stream.
    RowBatch* into = nullptr;
  };
  struct Found {
    const Kept* row = nullptr;
    uint32_t segment = 0;
  };

  void take_event(Values event);
  void act(const plan::JoinRole& role, causal::Thread thread, Values event);
  void act_on_message(const plan::JoinRole& role, causal::Thread thread, Values event);
  std::optional<causal::ContextKey> message_of(const plan::JoinRole& role, Values event);
  void fork(causal::Thread parent, const plan::JoinRole& role, Values event);
  void act_on_socket(const plan::JoinRole& role, causal::Thread thread, Values event);
  void see(causal::Thread thread, int64_t time);
  [[nodiscard]] bool is_in_call(causal::Thread thread, size_t call) const;
  void find_sends(RowBatch& events);
  void send_ahead(const causal::Passage& received);
  void answer(RowBatch& joined, const std::optional<causal::Moment>& moment);
  void give(size_t stage, uint16_t stream, const std::optional<causal::Moment>& moment,
            Values values);
  void keep(size_t stage, uint16_t stream, const causal::Moment& moment, Values values);
  bool join(size_t stage, size_t index, Joining& joining);
  bool join_groups(size_t stage, size_t index, Joining& joining);
  std::vector<aggregate::Row> groups_before(size_t stage, size_t index,
                                            const causal::Moment& later);
  static std::vector<const std::vector<aggregate::Value>*> values_of(
      const std::vector<Found>& rows);
  static Counted& counted_for(CountedBefore& before, uint32_t segment);
  std::vector<Found> find_new(const BySegment& segments, const causal::Moment& later,
                              Counted& counted) const;
  bool join_nothing(size_t stage, size_t index, Joining& joining);
  bool make_room(uint64_t request);
  [[nodiscard]] std::vector<Found> found(size_t stream, const causal::Moment& later,
                                         const plan::JoinStage::Join& join) const;
  void drop_gone();

  const plan::Joined& joined_;
  JoinLimits limits_;
  JoinObserver* observer_;
  causal::Graph graph_;
  causal::Sockets sockets_;
  causal::MessageKeys messages_;
  // What is sent in the events that are taken, by stream: bytes may be seen to be read before the
  // call that sends them has returned, which is when it is seen.
  struct Ahead {
    size_t at = 0;  // In the events.
    causal::Passage sent;
  };
  void show_ahead(const Ahead& ahead);
  std::vector<aggregate::Value> shown_;  // What the observer looks at.
  std::map<causal::StreamKey, std::deque<Ahead>> ahead_;
  RowBatch* events_ = nullptr;  // Of take().
  size_t at_ = 0;
  std::optional<causal::Thread> uncounted_;  // Of the event, until the graph has counted that.
  // When a thread was seen last, by its number: what it is in has begun behind that. And when that
  // of the event was seen before.
  std::unordered_map<int64_t, int64_t> last_seen_;
  int64_t seen_before_ = causal::Passage::Count::kNever;
  int64_t looks_ahead_ns_ = 0;
  std::vector<std::unique_ptr<JoinRest>> stages_;
  std::vector<size_t> first_stream_;                // By stage: where its streams are in Request.
  std::vector<std::pair<size_t, uint16_t>> asker_;  // By stage: whose stream its rows are.
  size_t streams_ = 0;
  RowBatch* rows_ = nullptr;  // Of take().
  std::unordered_map<uint64_t, Request> requests_;
  size_t kept_ = 0;
  uint64_t order_ = 0;
  JoinCounts counts_;
};

}  // namespace clew::answer
