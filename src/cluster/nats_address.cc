// SPDX-License-Identifier: Apache-2.0
#include "cluster/nats_address.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace clew::cluster {
namespace {

constexpr std::string_view kPlainScheme = "nats://";
constexpr std::string_view kTlsScheme = "tls://";
constexpr uint16_t kUsualPort = 4222;

// Only what cannot be a secret is shown: what stands behind the last `@`.
tl::unexpected<Error> no_address(std::string_view text, std::string_view why) {
  const size_t at = text.rfind('@');
  std::string shown(at == std::string_view::npos ? text : text.substr(at + 1));
  std::replace_if(
      shown.begin(), shown.end(), [](char one) { return one < ' ' || one > '~'; }, '?');
  return fail(ErrorCode::InvalidQuery,
              fmt::format("'{}' is no address of a cluster: {}; one is nats://host:4222 or "
                          "tls://host:4222",
                          shown, why));
}

int digit_of(char one) {
  if (one >= '0' && one <= '9') return one - '0';
  if (one >= 'a' && one <= 'f') return one - 'a' + 10;
  if (one >= 'A' && one <= 'F') return one - 'A' + 10;
  return -1;
}

// %41 is A.
std::optional<std::string> decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    if (i + 2 >= text.size() || digit_of(text[i + 1]) < 0 || digit_of(text[i + 2]) < 0)
      return std::nullopt;
    result += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
    i += 2;
  }
  return result;
}

bool is_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char one) {
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9') ||
           one == '.' || one == '-' || one == '_' || one == ':';
  });
}

// Why a text that begins with no scheme of ours is none: the scheme that it has, if it has one.
std::string wrong_scheme(std::string_view text) {
  constexpr size_t kSchemeMax = 16;
  const size_t end = std::min(text.find("://"), text.size());
  const bool is_scheme = end > 0 && end < text.size() && end <= kSchemeMax &&
                         std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(end),
                                     [](char one) { return one >= 'a' && one <= 'z'; });
  return is_scheme ? fmt::format("it begins with {}://", text.substr(0, end))
                   : std::string("nats:// or tls:// is missing in front");
}

// "host:port", "host", "[::1]:port". Gives what is wrong with it.
std::string_view take_server(std::string_view text, NatsAddress& address) {
  constexpr std::string_view kNoHost = "it has no right host";
  std::string_view host = text;
  std::string_view port;
  const bool has_brackets = text.substr(0, 1) == "[";
  const size_t host_end = has_brackets ? text.find(']') : std::string_view::npos;
  if (has_brackets && host_end == std::string_view::npos) return kNoHost;
  const size_t colon = text.find(':', has_brackets ? host_end : 0);
  if (colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (has_brackets) {
    if (host.back() != ']') return kNoHost;
    host = host.substr(1, host.size() - 2);
  }
  uint16_t number = kUsualPort;
  if (colon != std::string_view::npos) {
    const auto read = std::from_chars(port.data(), port.data() + port.size(), number);
    if (read.ec != std::errc() || read.ptr != port.data() + port.size() || number == 0)
      return "its port is no number from 1 to 65535";
  }
  if (!is_host(host)) return kNoHost;
  address.hosts.emplace_back(host);
  address.servers.push_back(has_brackets ? fmt::format("nats://[{}]:{}", host, number)
                                         : fmt::format("nats://{}:{}", host, number));
  return {};
}

bool take_secrets(std::string_view text, NatsAddress& address) {
  const size_t colon = text.find(':');
  const auto first = decoded(text.substr(0, colon));
  if (!first || first->empty()) return false;
  if (colon == std::string_view::npos) {
    address.token = *first;
    return true;
  }
  const auto second = decoded(text.substr(colon + 1));
  if (!second) return false;
  address.user = *first;
  address.password = *second;
  return true;
}

}  // namespace

std::string NatsAddress::shown(size_t server) const {
  const std::string& one = servers[server];
  return is_tls ? fmt::format("tls{}", std::string_view(one).substr(one.find(':'))) : one;
}

std::string NatsAddress::shown() const {
  std::string all;
  for (size_t i = 0; i < servers.size(); ++i)
    all += (i == 0 ? "" : ",") + shown(i);
  return all;
}

bool is_loopback(std::string_view host) {
  // A name that begins as an address does is anybody's.
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "::1" || (is_number && host.substr(0, 4) == "127.");
}

Expected<NatsAddress> parse_nats_address(std::string_view text) {
  NatsAddress address;
  for (std::string_view rest = text; !rest.empty() || address.servers.empty();) {
    const size_t comma = rest.find(',');
    std::string_view one = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const bool is_tls = one.substr(0, kTlsScheme.size()) == kTlsScheme;
    if (!is_tls && one.substr(0, kPlainScheme.size()) != kPlainScheme)
      return no_address(one, wrong_scheme(one));
    if (!address.servers.empty() && is_tls != address.is_tls)
      return no_address(one, "some of its servers have TLS and some have not");
    address.is_tls = is_tls;
    one = one.substr(is_tls ? kTlsScheme.size() : kPlainScheme.size());
    if (const size_t at = one.rfind('@'); at != std::string_view::npos) {
      if (!take_secrets(one.substr(0, at), address))
        return no_address(one, "what stands before @ is no user and password");
      one = one.substr(at + 1);
    }
    if (!one.empty() && one.back() == '/') one.remove_suffix(1);
    if (const std::string_view wrong = take_server(one, address); !wrong.empty())
      return no_address(one, wrong);
  }
  return address;
}

}  // namespace clew::cluster
