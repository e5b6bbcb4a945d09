// SPDX-License-Identifier: Apache-2.0
#include "metrics/push_place.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "output/format.h"

namespace clew::metrics {
namespace {

constexpr int kUsualPort = 4318;
constexpr std::string_view kPath = "/v1/metrics";
constexpr size_t kSecretMax = size_t{64} << 10;

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

using Header = std::pair<std::string, std::string>;

// What is behind the name may be a secret, also where it is written wrong.
Expected<Header> parse_header(const std::string& text, std::string_view how) {
  const size_t end = std::min(text.find_first_of("=: \t\r\n"), text.size());
  std::string name = text.substr(0, end);
  if (end != text.size() && text[end] == '=' && !name.empty() &&
      std::all_of(name.begin(), name.end(), is_plain))
    return Header(std::move(name), text.substr(end + 1));
  return fail(ErrorCode::InvalidQuery,
              fmt::format("{}, and not as that of '{}' is", how, output::printable(name)));
}

Expected<void> check_value(const std::string& name, const std::string& value) {
  if (value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos) return {};
  return fail(ErrorCode::InvalidQuery, fmt::format("the header '{}' has more than one line", name));
}

// The end of its line is none of it.
Expected<std::string> read_secret(const std::string& name, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string value(kSecretMax + 1, '\0');
  if (file) file.read(value.data(), static_cast<std::streamsize>(value.size()));
  if (!file.is_open() || file.bad() || (file.gcount() == 0 && !file.eof())) {
    return fail(ErrorCode::NotFound, fmt::format("the file '{}' of the header '{}' cannot be read",
                                                 output::printable(path), name));
  }
  value.resize(static_cast<size_t>(file.gcount()));
  if (value.size() > kSecretMax) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("the file '{}' of the header '{}' has more than {} bytes",
                            output::printable(path), name, kSecretMax));
  }
  while (value.ends_with('\n') || value.ends_with('\r'))
    value.pop_back();
  return value;
}

// %XX; none: it is none.
std::optional<std::string> unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    uint8_t byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || read.ec != std::errc{} || read.ptr != digits.data() + 2)
      return std::nullopt;
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

bool is_one_name(const std::string& one, const std::string& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

// Names that are there already stay.
Expected<void> add_environment(PushPlace& place, const std::string& environment) {
  constexpr std::string_view kHow = "a header in OTEL_EXPORTER_OTLP_HEADERS is written NAME=VALUE";
  const std::vector<Header> given = place.headers;
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find(',', at), environment.size());
    const std::string text = trimmed(environment.substr(at, end - at));
    at = end + 1;
    if (text.empty()) continue;
    const auto [name, escaped] = CLEW_TRY(parse_header(text, kHow));
    const std::string& wanted = name;
    const auto value = unescaped(trimmed(escaped));
    if (!value) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("{}, with %XX, and not as that of '{}' is", kHow, name));
    }
    CLEW_TRY(check_value(name, *value));
    if (std::none_of(given.begin(), given.end(),
                     [&](const Header& each) { return is_one_name(each.first, wanted); }))
      place.headers.emplace_back(name, *value);
  }
  return {};
}

}  // namespace

Expected<PushPlace> parse_push_place(const std::string& url,
                                     const std::vector<std::string>& headers,
                                     const std::string& environment) {
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
    auto [name, value] =
        CLEW_TRY(parse_header(header, "a header is written NAME=VALUE or NAME=@FILE"));
    if (value.starts_with('@')) value = CLEW_TRY(read_secret(name, value.substr(1)));
    CLEW_TRY(check_value(name, value));
    place.headers.emplace_back(std::move(name), std::move(value));
  }
  CLEW_TRY(add_environment(place, environment));
  return place;
}

}  // namespace clew::metrics
