// SPDX-License-Identifier: Apache-2.0
#include "copy/table_extents.h"

#include <algorithm>
#include <optional>

namespace clew::copy {

bool TableExtents::add(uint64_t table, const TableRead& read) {
  const TableKind kind = read.of_words ? TableKind::Addresses : TableKind::Offsets;
  const auto [at, is_new] = tables_.try_emplace(table);
  Known& known = at->second;
  if (!known.reads.emplace(read.instruction, read).second) return false;
  if (is_new) known.extent.kind = kind;
  known.kinds_differ |= known.extent.kind != kind;
  const FoundBound found = bounds_.find(read);
  const std::optional<TableBound>& bound = found.bound;
  known.extent.assumed.insert(known.extent.assumed.end(), found.assumed.begin(),
                              found.assumed.end());
  known.all_bounded &= bound.has_value();
  if (bound && bound->entries > known.bound.entries) known.bound = *bound;
  measure(table, known);
  return true;
}

void TableExtents::measure(uint64_t table, Known& known) const {
  const uint64_t wanted = known.all_bounded ? known.bound.entries : UINT64_MAX;
  TableEntries entries = reader_.read(known.extent.kind, table, wanted);
  // A comparison says how many there are; all else, how many there can be.
  const bool must_be_all = known.all_bounded && known.bound.is_checked;
  const bool is_whole = entries.targets.size() == wanted || (entries.has_end && !must_be_all);
  known.extent.is_known = is_whole && !entries.targets.empty() && !known.kinds_differ;
  known.extent.targets = std::move(entries.targets);
}

}  // namespace clew::copy
