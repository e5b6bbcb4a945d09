// SPDX-License-Identifier: Apache-2.0
#include "cluster/outbox.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "cluster/chunks.h"

namespace clew::cluster {
namespace {

constexpr int64_t kSendRetry = kSecond / 4;
constexpr std::string_view kShard = "0";  // There are no relays.

}  // namespace

bool Outbox::send(Bus& bus, const Subjects& subjects, const Clock& clock, uint64_t log,
                  int64_t until_ns) {
  const int64_t begin = clock.monotonic_ns();
  if (begin < next_ns_) return false;
  if (log == 0) {
    next_ns_ = begin + kSendRetry;
    return false;
  }
  const SpillOwner& owner = spill_.owner();
  Partial partial{.query = owner.query,
                  .revision = owner.revision,
                  .node = owner.node,
                  .incarnation = owner.incarnation,
                  .log = log};
  bool has_sent = false;
  while (Spill::Kept* const kept = spill_.next()) {
    const auto table = Spill::table_of(*kept);
    if (!table) {
      has_sent = true;
      spill_.drop(*kept);
      continue;
    }
    kept->was_tried = true;
    partial.pane = kept->pane;
    partial.previous = spill_.previous_of(*kept);
    partial.safe = spill_.safe();
    if (!append(bus, subjects, partial, *table)) {
      next_ns_ = clock.monotonic_ns() + kSendRetry;
      return has_sent;
    }
    has_sent = true;
    kept->is_sent = true;
    sent_ = std::max(sent_, kept->pane);
    // Beats and other queries want their turn.
    if (clock.monotonic_ns() <= until_ns) continue;
    next_ns_ = clock.monotonic_ns() + 1;
    return true;
  }
  return has_sent;
}

void Outbox::send_again(const std::vector<PaneRange>& panes) {
  spill_.send_again(panes);
  ++round_;
  sequence_ = 0;
  next_ns_ = 0;
  if (const Spill::Kept* const first = spill_.next()) sent_ = std::min(sent_, first->pane - 1);
}

bool Outbox::append(Bus& bus, const Subjects& subjects, Partial partial, const Bytes& table) {
  auto chunks = split(table);
  CLEW_ASSERT(chunks);  // kFrameMax is less than all chunks hold.
  for (Chunk& chunk : *chunks) {
    partial.table = std::move(chunk);
    const std::string id = fmt::format("{}.{}.{}.{}.{}.{}.{}.{}", partial.query, partial.revision,
                                       partial.node, partial.incarnation.start_ns, partial.log,
                                       round_, partial.pane, partial.table.index);
    const auto appended =
        bus.append(subjects.partial(partial.query, kShard, partial.node), id, to_bytes(partial));
    if (!appended) refusal_ = appended.error();
    if (!appended) return false;
    sequence_ = std::max(sequence_, *appended);
  }
  return true;
}

}  // namespace clew::cluster
