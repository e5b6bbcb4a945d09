// SPDX-License-Identifier: Apache-2.0
#include "stream/hopping.h"

#include <limits>

#include "base/assert.h"
#include "stream/key.h"

namespace clew::stream {
namespace {

// Numbers of panes further from 0 are of no time that there is.
constexpr int64_t kFarthest = std::numeric_limits<int64_t>::max() / 2;

int64_t floor_of(int64_t number, int64_t by) {
  return number / by - (number % by < 0 ? 1 : 0);
}

}  // namespace

Hopping::Hopping(const WindowShape& shape, aggregate::TableSchema schema)
    : Windows(shape, std::move(schema)),
      panes_of_size_(shape.size_ns / shape.panes.width_ns),
      panes_of_step_(shape.step_ns / shape.panes.width_ns) {
  CLEW_ASSERT(shape.size_ns % shape.panes.width_ns == 0);
  CLEW_ASSERT(shape.step_ns % shape.panes.width_ns == 0);
  CLEW_ASSERT(panes_of_step_ > 0 && panes_of_size_ >= panes_of_step_);
}

int64_t Hopping::begin_of(int64_t window) const {
  return shape_.panes.begin(window * panes_of_step_);
}

int64_t Hopping::end_of(int64_t window) const {
  return shape_.panes.begin(window * panes_of_step_ + panes_of_size_);
}

Hopping::Range Hopping::windows_of(int64_t pane) const {
  return {.first = floor_of(pane - panes_of_size_, panes_of_step_) + 1,
          .last = floor_of(pane, panes_of_step_)};
}

// False where all windows of the pane are closed; what is in it is late for those that are.
bool Hopping::note_change(int64_t pane) {
  const Range windows = windows_of(pane);
  bool is_wanted = false;
  for (int64_t window = windows.last; window >= windows.first; --window) {
    if (is_closed(end_of(window))) break;  // And so are those before it.
    changed_.insert(window);
    is_wanted = true;
  }
  return is_wanted;
}

void Hopping::count(aggregate::Table& pane, const aggregate::CellsByKey::value_type& row) {
  const bool is_new = !pane.cells().contains(row.first);
  if (is_new && rows_ == shape_.rows_max) {
    ++dropped_;
    return;
  }
  rows_ += is_new ? 1 : 0;
  pane.add(row.first, row.second);
}

// The rows of a partial table lie side by side by pane.
void Hopping::add(const aggregate::Table& partial) {
  CLEW_ASSERT(partial.schema() == schema_);
  auto at = partial.cells().begin();
  while (at != partial.cells().end()) {
    const int64_t pane = number_in(at->first);
    const bool is_real = pane > -kFarthest && pane < kFarthest;
    const bool is_wanted = is_real && note_change(pane);
    const bool is_late = !is_real || is_closed(end_of(windows_of(pane).first));
    for (; at != partial.cells().end() && number_in(at->first) == pane; ++at) {
      if (is_wanted) count(panes_.try_emplace(pane, schema_).first->second, *at);
      late_ += is_late ? 1 : 0;
    }
  }
}

Given Hopping::given(int64_t window) {
  Given given{.begin_ns = begin_of(window),
              .end_ns = end_of(window),
              .version = ++versions_[window],
              .is_over = end_of(window) <= watermark_ns_,
              .table = aggregate::Table(schema_)};
  const int64_t first = window * panes_of_step_;
  const auto end = panes_.lower_bound(first + panes_of_size_);
  for (auto pane = panes_.lower_bound(first); pane != end; ++pane) {
    for (const auto& [key, cells] : pane->second.cells())
      given.table.add(with_number(key, given.begin_ns), cells);
  }
  return given;
}

std::vector<Given> Hopping::give() {
  std::vector<Given> all;
  while (!changed_.empty() && end_of(*changed_.begin()) <= watermark_ns_) {
    all.push_back(given(*changed_.begin()));
    changed_.erase(changed_.begin());
  }
  forget();
  return all;
}

void Hopping::forget() {
  while (!panes_.empty() && is_closed(end_of(windows_of(panes_.begin()->first).last))) {
    rows_ -= panes_.begin()->second.size();
    panes_.erase(panes_.begin());
  }
  while (!versions_.empty() && is_closed(end_of(versions_.begin()->first)))
    versions_.erase(versions_.begin());
}

std::vector<Given> Hopping::finish() {
  std::vector<Given> all;
  all.reserve(changed_.size());
  for (const int64_t window : changed_)
    all.push_back(given(window));
  changed_.clear();
  return all;
}

}  // namespace clew::stream
