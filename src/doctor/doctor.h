// SPDX-License-Identifier: Apache-2.0
// clew doctor: what stands in the way of tracing on this machine and in a process, before anything
// is changed. Text for people, or one JSON object a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "cluster/bus_nats.h"
#include "doctor/measure.h"

namespace clew::doctor {

// Checks of the machine and, with a pid, of the process; `problems` counts those that stand in the
// way of tracing.
struct Request {
  std::optional<pid_t> pid;
  bool may_stop = false;  // The process, for a moment: to look at its threads.
  bool json = false;
};
struct Diagnosis {
  std::string text;
  uint32_t problems = 0;
};
Diagnosis diagnose(const Request& request);

// What joins by cause know of a process, by these vocabularies. Nothing of it stands in the way of
// tracing; a process that cannot be looked at is a problem.
struct CauseRequest {
  pid_t pid = 0;
  std::vector<std::string> vocabulary_paths{};
  std::optional<MeasureRequest> measure{};  // Also how often that is right.
  bool json = false;
};
Diagnosis diagnose_causes(const CauseRequest& request);

// Of a cluster's server: a file of its configuration; or of those that run, by their URL, what they
// say to everybody, and whether they let in who this end is.
struct ClusterRequest {
  std::string place;
  cluster::NatsOptions connect{};
  std::string tenant = "default";
  bool json = false;
};
Expected<Diagnosis> diagnose_cluster(const ClusterRequest& request);

}  // namespace clew::doctor
