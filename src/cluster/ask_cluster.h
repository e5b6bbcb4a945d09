// SPDX-License-Identifier: Apache-2.0
// One query over a cluster, from its text to its last row: what engine/run.h is on one machine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "cluster/bus.h"
#include "cluster/signing.h"
#include "engine/run.h"
#include "output/row_sink.h"

namespace clew::cluster {

struct ClusterRequest {
  engine::Request query;  // Its text, names of processes, intervals and end; no pids, no command.
  std::string tenant = "default";
  std::map<std::string, std::string> labels{};  // Of the nodes that are asked.
  // One more end of the bus.
  std::function<Expected<std::unique_ptr<Bus>>()> connect;
  int64_t install_ns = 1'000'000'000;  // So long nodes are waited for before the answer begins.
  std::string url{};                   // For messages.
  std::string name{};                  // Of a standing query: a word.
  const SigningKey* key = nullptr;     // Borrowed: to sign with.
};

// Asks the root that leads, or brings one that does until the end. Runs until the query's end, or
// until `stop_descriptor` is readable. Errors: no node is there, or none can answer, with the
// reasons.
Expected<void> ask_cluster(const ClusterRequest& request, int stop_descriptor,
                           output::RowSink& sink, engine::Notices& notices);

// Has the query run until somebody ends it, and returns once it does: a root has to be there. What
// it gives is read by its name (answers.h). Errors as above; Refused: the name is taken.
Expected<void> stand(const ClusterRequest& request, int stop_descriptor, engine::Notices& notices);

// Ends it (of the request only tenant, url, name and key matter), whoever has asked it; where nodes
// want to know who asks, only the same key does. NotFound: there is none of this name.
// Returns what that was, in words.
Expected<std::string> end_query(Bus& bus, const ClusterRequest& request);

}  // namespace clew::cluster
