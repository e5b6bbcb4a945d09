// SPDX-License-Identifier: Apache-2.0
// clew doctor --cluster: of a server's configuration what it lets somebody do; of a server that
// runs what it says to everybody who connects, before they say who they are.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <netdb.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "cluster/nats_address.h"
#include "doctor/doctor.h"
#include "doctor/findings.h"
#include "doctor/nats_rules.h"
#include "doctor/nats_settings.h"

namespace clew::doctor {
namespace {

using nlohmann::json;

constexpr size_t kInfoMax = 64UL << 10;
constexpr int kPatienceMs = 3000;

bool waits_well(int descriptor, decltype(pollfd::events) events) {
  pollfd one{.fd = descriptor, .events = events, .revents = 0};
  return poll(&one, 1, kPatienceMs) == 1;
}

Expected<FileDescriptor> connect_to(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return fail(ErrorCode::NotFound, fmt::format("'{}': {}", host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  int last = ECONNREFUSED;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    FileDescriptor end(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int begun = connect(end.get(), one->ai_addr, one->ai_addrlen);
    last = begun == 0 ? 0 : errno;
    if (last == EINPROGRESS) {
      socklen_t size = sizeof last;
      const bool is_told = waits_well(end.get(), POLLOUT) &&
                           getsockopt(end.get(), SOL_SOCKET, SO_ERROR, &last, &size) == 0;
      if (!is_told) last = ETIMEDOUT;
    }
    if (last == 0) return end;
  }
  return fail(ErrorCode::Io, fmt::format("{}:{}: {}", host, port, error_text(last)));
}

// INFO {…}, the first line of a server.
Expected<json> info_of(int descriptor, const std::string& where) {
  std::string line;
  std::array<char, 4096> some{};
  while (line.find('\n') == std::string::npos && line.size() < kInfoMax) {
    if (!waits_well(descriptor, POLLIN)) break;
    const ssize_t count = recv(descriptor, some.data(), some.size(), 0);
    if (count <= 0) break;
    line.append(some.data(), static_cast<size_t>(count));
  }
  constexpr std::string_view kInfo = "INFO ";
  const json info =
      line.starts_with(kInfo) ? json::parse(line.substr(kInfo.size()), nullptr, false) : json();
  if (info.is_object()) return info;
  return fail(ErrorCode::Io, fmt::format("what answers at {} is no server of NATS", where));
}

bool is_set(const json& info, const char* name) {
  const auto found = info.find(name);
  return found != info.end() && found->is_boolean() && found->get<bool>();
}

void check_info(const json& info, bool is_here, Findings& findings) {
  const auto version = info.find("version");
  findings.ok("server", fmt::format("NATS {}", version != info.end() && version->is_string()
                                                   ? version->get<std::string>().substr(0, 32)
                                                   : "of no version"));
  const bool has_tls = is_set(info, "tls_required");
  if (has_tls || is_here) {
    findings.ok("tls", has_tls ? "what goes to it is encrypted" : "it is on this machine");
  } else {
    findings.problem("tls", {.detail = "plain text is spoken with it",
                             .refused = "who is on the way can read and change all",
                             .remedy = "tls { … } in its configuration"});
  }
  if (has_tls && !is_set(info, "tls_verify"))
    findings.note("certificates", {.detail = "clients need no certificate"});
  if (is_set(info, "auth_required") || is_set(info, "tls_verify")) {
    findings.ok("accounts", "it asks who one is");
  } else {
    findings.problem("accounts", {.detail = "it lets in whoever connects",
                                  .refused = "whoever reaches it can speak for any node and root",
                                  .remedy = "put all users into 'accounts'"});
  }
  if (is_set(info, "jetstream")) {
    findings.ok("jetstream", "it keeps logs and keys");
  } else {
    findings.note("jetstream", {.detail = "it keeps no logs and keys, or does not say so",
                                .refused = "a cluster needs them",
                                .remedy = "jetstream { store_dir: … }"});
  }
  findings.note("permissions", {.detail = "what users may do, it tells nobody",
                                .remedy = "clew doctor --cluster FILE, its configuration"});
}

Expected<void> check_server(const std::string& url, Findings& findings) {
  const cluster::NatsAddress address = CLEW_TRY(cluster::parse_nats_address(url));
  const std::string& server = address.servers[0];
  const std::string port = server.substr(server.rfind(':') + 1);
  const FileDescriptor end = CLEW_TRY(connect_to(address.hosts[0], port));
  const json info = CLEW_TRY(info_of(end.get(), address.shown()));
  check_info(info, cluster::is_loopback(address.hosts[0]), findings);
  return {};
}

}  // namespace

Expected<Diagnosis> diagnose_cluster(const ClusterRequest& request) {
  const bool is_url = request.place.find("://") != std::string::npos;
  // A URL may have a password in it.
  Findings findings(is_url ? "server" : "server " + request.place);
  if (is_url) {
    CLEW_TRY(check_server(request.place, findings));
  } else {
    check_nats_settings(CLEW_TRY(read_nats_settings(request.place)), findings);
  }
  return Diagnosis{.text = request.json ? json_of(findings.all()) : text_of(findings.all()),
                   .problems = findings.problems()};
}

}  // namespace clew::doctor
