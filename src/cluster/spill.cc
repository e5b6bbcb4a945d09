// SPDX-License-Identifier: Apache-2.0
#include "cluster/spill.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace clew::cluster {

void Spill::add(Pane pane, Bytes table) {
  CLEW_ASSERT(kept_.empty() || kept_.back().pane < pane);
  bytes_ += table.size();
  kept_.push_back({.pane = pane, .table = std::move(table)});
  while (bytes_ > bytes_max_ && kept_.size() > 1)
    drop_first();
}

void Spill::drop_first() {
  const Kept& first = kept_.front();
  bytes_ -= first.table.size();
  // What was sent may have been merged; what was not, nobody has.
  if (!first.is_sent) {
    const bool goes_on = !lost_.empty() && lost_.back().last + 1 == first.pane;
    if (goes_on) {
      lost_.back().last = first.pane;
    } else {
      lost_.push_back({.first = first.pane, .last = first.pane});
    }
  }
  kept_.pop_front();
}

Spill::Kept* Spill::next() {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [](const Kept& each) { return !each.is_sent; });
  return found == kept_.end() ? nullptr : &*found;
}

void Spill::forget(Pane mark) {
  while (!kept_.empty() && kept_.front().pane <= mark) {
    bytes_ -= kept_.front().table.size();
    kept_.pop_front();
  }
}

void Spill::send_again(const std::vector<PaneRange>& panes) {
  for (Kept& each : kept_) {
    const bool is_wanted = std::any_of(panes.begin(), panes.end(), [&each](const PaneRange& range) {
      return range.first <= each.pane && each.pane <= range.last;
    });
    if (is_wanted) each.is_sent = false;
  }
}

}  // namespace clew::cluster
