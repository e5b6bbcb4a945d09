// SPDX-License-Identifier: Apache-2.0
// What an answer lacks of nodes, in words: by the numbers of its intervals, or by the time of day
// where it has none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/message.h"
#include "stream/pane.h"

namespace clew::cluster {

// Whether of somebody this pane is missing.
bool has_gap(const std::vector<NodeGap>& gaps, Pane pane);

// `first`: the pane that is interval 1.
std::vector<std::string> texts_of(std::vector<NodeGap> gaps, const stream::Panes& panes,
                                  std::optional<Pane> first);
// The same of what may be missing (Asker::unsure()).
std::vector<std::string> texts_of_unsure(std::vector<NodeGap> gaps, const stream::Panes& panes,
                                         std::optional<Pane> first);

}  // namespace clew::cluster
