// SPDX-License-Identifier: Apache-2.0
// What several nodes have lost, as one: a process's number says nothing without its machine.
#pragma once

#include <string>

#include <fmt/format.h>

#include "collect/losses.h"

namespace clew::cluster {

inline void add_losses(collect::Losses& all, collect::Losses of_one, const std::string& node) {
  for (std::string& lost : of_one.lost)
    lost += fmt::format(" (node {})", node);
  for (collect::LeftOut& left_out : of_one.left_out)
    left_out.reason += fmt::format(" (node {})", node);
  all.merge(of_one);
}

}  // namespace clew::cluster
