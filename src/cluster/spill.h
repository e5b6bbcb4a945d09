// SPDX-License-Identifier: Apache-2.0
// What a node has counted for one query and nobody has said is safe: its partials in the order of
// their panes, until they are marked. They go to the log in this order, each once more until the
// bus says that it is there. When they are too many for the memory, they go to files; when they are
// too many for these, the two oldest that were never sent become one; and where that gains nothing,
// the oldest are dropped. What was counted in another pane, or dropped, is named.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/message.h"
#include "cluster/spill_folder.h"

namespace clew::cluster {

class Spill {
 public:
  struct Kept {
    Pane pane = 0;
    Bytes table{};  // Empty: it is in the file.
    std::shared_ptr<SpillFile> file{};
    uint64_t offset = 0;
    bool is_sent = false;
    bool was_tried = false;  // It may have arrived, though nobody said so.
  };

  // `folder` is borrowed; null: there are no files.
  Spill(SpillOwner owner, size_t bytes_max, SpillFolder* folder)
      : owner_(std::move(owner)), bytes_max_(bytes_max), folder_(folder) {}

  [[nodiscard]] const SpillOwner& owner() const { return owner_; }
  // Panes ascend.
  void add(Pane pane, Bytes table);
  // What a node before has left.
  void add(const LeftFile& left);
  // The first one that is not sent, or null.
  [[nodiscard]] Kept* next();
  // Of the one before this; none: all before it are safe, or named.
  [[nodiscard]] Pane previous_of(const Kept& kept) const;
  // Of the last one before next(); none: there is none that is not safe.
  [[nodiscard]] Pane last_sent() const;
  // The last one that has gone because it was safe; none: none has.
  [[nodiscard]] Pane safe() const { return safe_; }
  // As safe() was of the one before.
  void go_on_behind(Pane safe) { safe_ = safe; }
  // Io: its file is not as it was written; the pane is lost.
  [[nodiscard]] static Expected<Bytes> table_of(const Kept& kept);
  // All that is in memory, to files, where there are: the node ends.
  void write_all();
  // It cannot be had any more.
  void drop(const Kept& kept);
  // All up to this one are safe.
  void forget(Pane mark);
  // These are wanted once more.
  void send_again(const std::vector<PaneRange>& panes);
  // Nobody has counted these, or not all of each.
  void name_lost(const PaneRange& panes);
  // In memory.
  [[nodiscard]] size_t bytes() const { return bytes_; }
  [[nodiscard]] bool empty() const { return kept_.empty(); }
  // Dropped ones, which nobody has: ranges ascend.
  [[nodiscard]] const std::vector<PaneRange>& lost() const { return lost_; }
  // Ranges of panes that are counted in the last one of each.
  [[nodiscard]] const std::vector<PaneRange>& merged() const { return merged_; }
  // Why files are not used, once until that is over; empty: they are, or are not wanted.
  std::string take_problem() { return std::exchange(problem_, {}); }

 private:
  void shrink();
  bool write_oldest();
  bool merge_oldest();
  void drop_first();
  void note_lost(Pane pane);
  void name_given_up(const std::vector<PaneRange>& panes);
  void note_merged(Pane first, Pane last);
  void release(Kept& kept);

  SpillOwner owner_;
  size_t bytes_max_;
  SpillFolder* folder_;
  size_t bytes_ = 0;
  std::deque<Kept> kept_;
  std::vector<PaneRange> lost_;
  // Were sent, and dropped since: whoever asks for them again lacks them.
  std::optional<PaneRange> given_up_;
  Pane safe_ = kNoPane;
  std::vector<PaneRange> merged_;
  std::string problem_;
  // The last pane when files failed last. Before that one is safe it is not over: each file that
  // goes makes room for another one, and the next fails again.
  std::optional<Pane> failed_at_;
};

}  // namespace clew::cluster
