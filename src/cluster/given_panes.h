// SPDX-License-Identifier: Apache-2.0
// Who gets each pane that a root gives, beside those that asked: behind the commit that makes it
// safe, in the order in which panes are given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "aggregate/table.h"
#include "cluster/message.h"

namespace clew::cluster {

struct GivenPane {
  const Control& want;
  const std::string& answered;  // NodeQuery::answered
  Pane pane = 0;
  const aggregate::Table& table;  // Whole, also where it is a correction.
  // It was given by a root before, and exported then.
  bool is_known = false;
};

class GivenPanes {
 public:
  GivenPanes() = default;
  GivenPanes(const GivenPanes&) = delete;
  GivenPanes& operator=(const GivenPanes&) = delete;
  virtual ~GivenPanes() = default;

  virtual void take(const GivenPane& given) = 0;
  // No more of it comes.
  virtual void end(const std::string& query) = 0;
  // This root gives it no more; whoever leads with its store begins behind done().
  virtual void forget(const std::string& query) = 0;
  // This pane and those before it are where they were to go, or are lost and counted: the next root
  // with this store need not give them.
  [[nodiscard]] virtual std::optional<Pane> done(const std::string& query) const = 0;
};

}  // namespace clew::cluster
