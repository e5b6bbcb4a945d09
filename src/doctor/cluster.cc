// SPDX-License-Identifier: Apache-2.0
// clew doctor --cluster: of a server's configuration what it lets somebody do; of a server that
// runs what it says to everybody who connects, before they say who they are.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/bus_nats.h"
#include "cluster/message.h"
#include "cluster/names.h"
#include "cluster/nats_address.h"
#include "cluster/nats_greeting.h"
#include "doctor/doctor.h"
#include "doctor/findings.h"
#include "doctor/nats_rules.h"
#include "doctor/nats_settings.h"

namespace clew::doctor {
namespace {

using cluster::NatsAddress;
using cluster::NatsGreeting;

constexpr std::chrono::seconds kPatience{3};

void check_greeting(const NatsGreeting& greeting, bool is_here, Findings& findings) {
  if (const auto is_new = cluster::check_version(greeting, "it"); !is_new) {
    findings.problem("server", {.detail = is_new.error().message, .remedy = "a newer nats-server"});
  } else {
    findings.ok("server", fmt::format("NATS {}", greeting.version));
  }
  if (greeting.wants_tls || is_here) {
    findings.ok("tls",
                greeting.wants_tls ? "what goes to it is encrypted" : "it is on this machine");
  } else {
    findings.problem("tls", {.detail = "plain text is spoken with it",
                             .refused = "who is on the way can read and change all",
                             .remedy = "tls { … } in its configuration"});
  }
  if (greeting.wants_tls && !greeting.wants_certificate)
    findings.note("certificates", {.detail = "clients need no certificate"});
  if (greeting.wants_credentials || greeting.wants_certificate) {
    findings.ok("accounts", "it asks who one is");
  } else {
    findings.problem("accounts", {.detail = "it lets in whoever connects",
                                  .refused = "whoever reaches it can speak for any node and root",
                                  .remedy = "put all users into 'accounts'"});
  }
}

// What it says of itself, where nobody is let in to try.
void check_said_jetstream(const NatsGreeting& greeting, Findings& findings) {
  if (greeting.has_jetstream) return findings.ok("jetstream", "it keeps logs and keys");
  findings.note("jetstream", {.detail = "it keeps no logs and keys, or does not say so",
                              .refused = "a cluster needs them",
                              .remedy = "jetstream { store_dir: … }"});
}

void check_jetstream(cluster::Bus& bus, const ClusterRequest& request, Findings& findings) {
  const auto leader = bus.get(cluster::bucket_of(request.tenant), cluster::kRootKey);
  if (!leader && leader.error().code == ErrorCode::Refused) {
    findings.note("jetstream", {.detail = "this user may not see what it keeps: as a node may"});
    return;
  }
  if (!leader) {
    findings.problem("jetstream", {.detail = leader.error().message,
                                   .refused = "a cluster needs logs and keys",
                                   .remedy = "jetstream { store_dir: … }"});
    return;
  }
  findings.ok("jetstream", "it keeps logs and keys");
  const auto root = *leader && !(*leader)->bytes.empty()
                        ? cluster::read_as<cluster::Leader>((*leader)->bytes)
                        : Expected<cluster::Leader>(fail(ErrorCode::NotFound, "no root leads"));
  if (root) {
    findings.ok("root", fmt::format("{} leads, or has led last", root->root));
  } else {
    findings.note("root", {.detail = root.error().message, .remedy = "clew root --cluster URL"});
  }
}

// Of one that can be reached: as this end, if it is to be somebody.
void check_way_in(const ClusterRequest& request, const NatsAddress& address, size_t server,
                  const NatsGreeting& greeting, Findings& findings) {
  const cluster::NatsOptions& who = request.connect;
  const bool is_somebody = !address.user.empty() || !address.token.empty() ||
                           !who.certificate_file.empty() || !who.credentials_file.empty();
  const bool is_asked = greeting.wants_credentials || greeting.wants_certificate;
  const bool is_tried = (is_somebody || !is_asked) && address.is_tls == greeting.wants_tls;
  if (address.is_tls != greeting.wants_tls) {
    findings.note(
        "url",
        {.detail = address.is_tls ? "the server has no TLS" : "the server wants TLS",
         .remedy = address.is_tls ? "a URL that begins nats://" : "a URL that begins tls://"});
  }
  if (!is_tried) {
    if (is_asked && !is_somebody) {
      findings.note("way-in", {.detail = "it was not tried: this end is nobody",
                               .remedy = "--certificate FILE and --key FILE, --credentials FILE or "
                                         "USER:PASSWORD@ in the URL, as a node has them"});
    }
    return check_said_jetstream(greeting, findings);
  }
  cluster::NatsOptions options = who;
  options.only_server = server;
  const auto bus = cluster::connect_nats(options);
  if (!bus) {
    findings.problem(
        "way-in", {.detail = bus.error().message, .refused = "no node, root or asker gets in so"});
    return check_said_jetstream(greeting, findings);
  }
  findings.ok("way-in",
              address.is_tls
                  ? fmt::format("its certificate is trusted and has the name '{}', and it "
                                "lets this end in",
                                address.hosts[0])
                  : std::string("it lets this end in"));
  check_jetstream(**bus, request, findings);
}

// Several that are to be one.
void check_together(const std::vector<std::pair<std::string, NatsGreeting>>& servers,
                    Findings& findings) {
  for (const auto& [name, greeting] : servers) {
    const auto& [first, other] = servers[0];
    if (greeting.cluster.empty()) {
      findings.problem("cluster", {.detail = name + " is in no cluster",
                                   .refused = "what it keeps, the others do not have",
                                   .remedy = "cluster { name: …, routes: [ … ] }"});
    } else if (greeting.cluster != other.cluster) {
      findings.problem("cluster", {.detail = fmt::format("{} is in '{}', and {} in '{}'", first,
                                                         other.cluster, name, greeting.cluster),
                                   .refused = "what one keeps, the other one does not have",
                                   .remedy = "one cluster.name for all of them"});
    }
    if (greeting.version != other.version) {
      findings.note("versions", {.detail = fmt::format("{} is NATS {}, and {} is NATS {}", first,
                                                       other.version, name, greeting.version)});
    }
  }
  if (findings.problems() == 0) {
    findings.ok("cluster", fmt::format("all {} are in '{}'", servers.size(),
                                       servers.empty() ? "" : servers[0].second.cluster));
  }
}

Expected<std::vector<Finding>> check_servers(const ClusterRequest& request) {
  const NatsAddress address = CLEW_TRY(cluster::parse_nats_address(request.place));
  const bool are_several = address.servers.size() > 1;
  std::vector<Finding> all;
  std::vector<std::pair<std::string, NatsGreeting>> reached;
  for (size_t i = 0; i < address.servers.size(); ++i) {
    const std::string name = address.shown(i);
    // A URL may have a password in it.
    Findings findings(are_several ? "server " + name : "server");
    const auto greeting = cluster::greet_nats(address.servers[i], name, kPatience);
    if (!greeting && !are_several) return tl::unexpected(greeting.error());
    if (greeting) {
      check_greeting(*greeting, cluster::is_loopback(address.hosts[i]), findings);
      if (cluster::check_version(*greeting, name))
        check_way_in(request, address, i, *greeting, findings);
      reached.emplace_back(name, *greeting);
    } else {
      findings.problem("server", {.detail = greeting.error().message});
    }
    if (i + 1 == address.servers.size()) {
      findings.note("permissions", {.detail = "what users may do, a server tells nobody",
                                    .remedy = "clew doctor --cluster FILE, its configuration"});
    }
    all.insert(all.end(), findings.all().begin(), findings.all().end());
  }
  if (are_several && reached.size() > 1) {
    Findings findings("servers");
    check_together(reached, findings);
    all.insert(all.end(), findings.all().begin(), findings.all().end());
  }
  return all;
}

Expected<std::vector<Finding>> check_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return fail(ErrorCode::NotFound,
                fmt::format("'{}' is no file, which a server's configuration is; a server is "
                            "written nats://host:4222 or tls://host:4222",
                            path));
  }
  Findings findings("server " + path);
  check_nats_settings(CLEW_TRY(read_nats_settings(path)), findings);
  return findings.all();
}

}  // namespace

Expected<Diagnosis> diagnose_cluster(const ClusterRequest& request) {
  const bool is_url = request.place.find("://") != std::string::npos;
  const std::vector<Finding> all =
      is_url ? CLEW_TRY(check_servers(request)) : CLEW_TRY(check_file(request.place));
  const auto problems = std::count_if(
      all.begin(), all.end(), [](const Finding& one) { return one.verdict == Verdict::Problem; });
  return Diagnosis{.text = request.json ? json_of(all) : text_of(all),
                   .problems = static_cast<uint32_t>(problems)};
}

}  // namespace clew::doctor
