// SPDX-License-Identifier: Apache-2.0
// What a root gives to others than those who ask (given_panes.h), and what its store has of that.
#include <optional>
#include <utility>

#include "cluster/root.h"

namespace clew::cluster {

void Root::hand_over(Asked& asked) {
  const auto fresh = std::exchange(asked.fresh, {});
  if (fresh.empty()) return;
  for (const PaneTable& one : asked.merge.given()) {
    const auto found = fresh.find(one.pane);
    if (found == fresh.end()) continue;
    options_.exports->take({.want = asked.want,
                            .answered = asked.answered,
                            .pane = one.pane,
                            .table = *one.table,
                            .is_known = found->second});
  }
}

// True: there is something to write.
bool Root::store_exported(Asked& asked) {
  if (options_.exports == nullptr || store_ == nullptr) return false;
  const auto done = options_.exports->done(asked.want.query);
  if (!done || done == asked.exported) return false;
  asked.exported = done;
  store_->put_exported(asked.want.query, *done);
  return true;
}

// They begin anew with what the store has, where this root leads again: what waits is given again
// then. Without a store it is not, so it is sent.
void Root::end_exports() {
  if (options_.exports == nullptr) return;
  for (const auto& [query, asked] : asked_) {
    if (store_ != nullptr) {
      options_.exports->forget(query);
    } else {
      options_.exports->end(query);
    }
  }
}

}  // namespace clew::cluster
