// SPDX-License-Identifier: Apache-2.0
// What `node`, `root` and `run --cluster` share: where the bus is, and how to be let in.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cluster/bus.h"
#include "cluster/bus_nats.h"

namespace clew::cmd {

struct ClusterArguments {
  std::string url;
  std::string tenant = "default";
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  std::string credentials_file;
  int replicas = 1;
};

// --ca, --certificate, --key, --credentials and --tenant.
void declare_identity(CLI::App& app, ClusterArguments& arguments, CLI::Option* url);
// How to connect, as `kind`.
cluster::NatsOptions nats_options(const ClusterArguments& arguments, const std::string& kind);
// Gives the option --cluster.
CLI::Option* declare_cluster(CLI::App& app, ClusterArguments& arguments);
// One more end of the bus: "node" and its name. A server's operator sees "clew node n1", and can
// permit it the inboxes "_INBOX.node.n1.>" alone.
Expected<std::unique_ptr<cluster::Bus>> connect(const ClusterArguments& arguments,
                                                const std::string& kind,
                                                const std::string& name = "");
// Whether all servers are on this machine's loopback.
bool is_on_loopback(const ClusterArguments& arguments);
// The URL, without secrets.
std::string shown_url(const ClusterArguments& arguments);

// "zone=a" each. InvalidQuery: one has no '='.
Expected<std::map<std::string, std::string>> labels_of(const std::vector<std::string>& texts);

}  // namespace clew::cmd
