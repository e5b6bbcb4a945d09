// SPDX-License-Identifier: Apache-2.0
#include "cluster/nats_greeting.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <netdb.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"

namespace clew::cluster {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using Deadline = std::chrono::steady_clock::time_point;

constexpr size_t kInfoMax = 64UL << 10;
constexpr size_t kTextMax = 64;
constexpr std::string_view kInfo = "INFO ";
// The first server that answers for what a log has without a consumer ($JS.API.DIRECT.GET).
constexpr std::pair<unsigned, unsigned> kOldest = {2, 9};

bool is_set(const json& info, const char* name) {
  const auto found = info.find(name);
  return found != info.end() && found->is_boolean() && found->get<bool>();
}

// Somebody else's: short, and of signs that do nothing at a terminal.
std::string text_in(const json& info, const char* name) {
  const auto found = info.find(name);
  if (found == info.end() || !found->is_string()) return {};
  std::string text = found->get<std::string>().substr(0, kTextMax);
  std::replace_if(
      text.begin(), text.end(), [](char one) { return one < ' ' || one > '~'; }, '?');
  return text;
}

// "2.9.10": 2 and 9.
std::optional<std::pair<unsigned, unsigned>> version_in(std::string_view text) {
  std::pair<unsigned, unsigned> version;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.first);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.second);
  if (minor.ec != std::errc()) return std::nullopt;
  return version;
}

bool waits_until(const FileDescriptor& descriptor, decltype(pollfd::events) events, Deadline end) {
  pollfd one{.fd = descriptor.get(), .events = events, .revents = 0};
  const auto left =
      std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
  return left.count() > 0 && poll(&one, 1, static_cast<int>(left.count())) == 1;
}

// 0, or errno's.
int connect_by(const FileDescriptor& descriptor, const addrinfo& to, Deadline end) {
  int problem = 0;
  if (connect(descriptor.get(), to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  socklen_t size = sizeof problem;
  const bool is_told = waits_until(descriptor, POLLOUT, end) &&
                       getsockopt(descriptor.get(), SOL_SOCKET, SO_ERROR, &problem, &size) == 0;
  return is_told ? problem : ETIMEDOUT;
}

// "nats://host:port", "nats://[::1]:port"
std::pair<std::string, std::string> host_and_port(std::string_view server) {
  const size_t scheme = server.find("://");
  if (scheme != std::string_view::npos) server.remove_prefix(scheme + 3);
  const size_t colon = server.rfind(':');
  std::string_view host = server.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return {std::string(host), std::string(server.substr(std::min(colon, server.size() - 1) + 1))};
}

Expected<FileDescriptor> reach(std::string_view server, const std::string& shown, Deadline end) {
  const auto [host, port] = host_and_port(server);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return fail(ErrorCode::NotFound,
                fmt::format("no bus answers at {}: no machine is known as '{}'", shown, host));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  int last = ECONNREFUSED;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    FileDescriptor descriptor(
        socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    last = descriptor.valid() ? connect_by(descriptor, *one, end) : errno;
    if (last == 0) return descriptor;
  }
  if (last == ECONNREFUSED) {
    return fail(ErrorCode::Io,
                fmt::format("no bus answers at {}: no NATS server listens there; is it started, "
                            "and is that its port?",
                            shown));
  }
  return fail(ErrorCode::Io,
              fmt::format("no bus answers at {}: no way leads there: {}", shown, error_text(last)));
}

}  // namespace

Expected<NatsGreeting> parse_nats_greeting(std::string_view line) {
  const json info =
      line.starts_with(kInfo) ? json::parse(line.substr(kInfo.size()), nullptr, false) : json();
  if (!info.is_object()) return fail(ErrorCode::Io, "it does not speak as NATS does");
  return NatsGreeting{.version = text_in(info, "version"),
                      .cluster = text_in(info, "cluster"),
                      .wants_tls = is_set(info, "tls_required"),
                      .wants_certificate = is_set(info, "tls_verify"),
                      .wants_credentials = is_set(info, "auth_required"),
                      .has_headers = is_set(info, "headers"),
                      .has_jetstream = is_set(info, "jetstream")};
}

Expected<NatsGreeting> greet_nats(std::string_view server, const std::string& shown,
                                  milliseconds patience) {
  const Deadline end = std::chrono::steady_clock::now() + patience;
  const FileDescriptor descriptor = CLEW_TRY(reach(server, shown, end));
  std::string line;
  std::array<char, 4096> some{};
  bool is_over = false;
  while (line.find('\n') == std::string::npos && line.size() < kInfoMax) {
    if (!waits_until(descriptor, POLLIN, end)) break;
    const ssize_t count = recv(descriptor.get(), some.data(), some.size(), 0);
    is_over = count <= 0;
    if (is_over) break;
    line.append(some.data(), static_cast<size_t>(count));
  }
  if (line.empty()) {
    const std::string_view what =
        is_over ? "something listens there that hangs up at once"
                : "something listens there that says nothing, where NATS speaks first";
    return fail(ErrorCode::Io, fmt::format("no bus answers at {}: {}; is that the port of a NATS "
                                           "server?",
                                           shown, what));
  }
  auto greeting = parse_nats_greeting(std::string_view(line).substr(0, line.find('\n')));
  if (greeting) return greeting;
  return fail(ErrorCode::Io, fmt::format("no bus answers at {}: what listens there is no NATS "
                                         "server: {}; is that the right port?",
                                         shown, greeting.error().message));
}

Expected<void> check_version(const NatsGreeting& greeting, const std::string& shown) {
  const auto version = version_in(greeting.version);
  const bool is_enough = version ? *version >= kOldest : greeting.has_headers;
  if (is_enough) return {};
  return fail(ErrorCode::Refused,
              fmt::format("{} is too old: it is NATS {}, and {}.{} or newer is needed", shown,
                          greeting.version.empty() ? "of no version" : greeting.version,
                          kOldest.first, kOldest.second));
}

}  // namespace clew::cluster
