// SPDX-License-Identifier: Apache-2.0
#include "metrics/push_place.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace clew::metrics {
namespace {

constexpr int kUsualPort = 4318;
constexpr std::string_view kPath = "/v1/metrics";

// Behind the last colon that is not an address's own ([::1]).
std::string_view port_in(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || host.find(']', colon) != std::string_view::npos) return {};
  return host.substr(colon + 1);
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), port);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size() && port > 0 &&
         port <= 65'535;
}

bool is_plain(char c) {
  return c > ' ' && c <= '~';
}

}  // namespace

Expected<PushPlace> parse_push_place(const std::string& url,
                                     const std::vector<std::string>& headers) {
  PushPlace place;
  const size_t slashes = url.find("://");
  const std::string scheme = slashes == std::string::npos ? "" : url.substr(0, slashes);
  const std::string rest = slashes == std::string::npos ? url : url.substr(slashes + 3);
  const std::string host = rest.substr(0, rest.find('/'));
  const std::string_view port = port_in(host);
  const bool has_port = !port.empty() || host.ends_with(':');
  const bool is_right = (scheme == "http" || scheme == "https") && !host.empty() &&
                        host.front() != ':' && (!has_port || is_port(port)) &&
                        host.find('@') == std::string::npos &&
                        std::all_of(rest.begin(), rest.end(), is_plain);
  if (!is_right) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("'{}' is no place for OTLP; one is written http://HOST:{} or "
                            "https://HOST:{}",
                            url, kUsualPort, kUsualPort));
  }
  place.server = fmt::format("{}://{}", scheme, host);
  if (!has_port) place.server += fmt::format(":{}", kUsualPort);
  place.path = rest.substr(host.size());
  while (place.path.ends_with('/'))
    place.path.pop_back();
  if (!place.path.ends_with(kPath)) place.path += kPath;
  for (const std::string& header : headers) {
    const size_t end = header.find('=');
    const bool is_header = end != std::string::npos && end != 0 &&
                           std::all_of(header.begin(), header.begin() + static_cast<ptrdiff_t>(end),
                                       [](char c) { return is_plain(c) && c != ':'; }) &&
                           header.find_first_of("\r\n") == std::string::npos;
    if (!is_header) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("a header is written NAME=VALUE, and not '{}'", header));
    }
    place.headers.emplace_back(header.substr(0, end), header.substr(end + 1));
  }
  return place;
}

}  // namespace clew::metrics
