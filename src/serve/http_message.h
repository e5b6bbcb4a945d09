// SPDX-License-Identifier: Apache-2.0
// What a browser asks and what it gets, as values, and the rules that each request must keep before
// anything looks at what it wants. None of this knows the library that speaks HTTP.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "output/json_value.h"

namespace clew::serve {

using output::Json;

// From here to 65535: HTTP/1.1's status codes (RFC 9110, 15).
enum class Status : uint16_t {
  Ok = 200,
  Created = 201,
  NotModified = 304,
  BadRequest = 400,
  Unauthorized = 401,
  Forbidden = 403,
  NotFound = 404,
  MethodNotAllowed = 405,
  Conflict = 409,
  ContentTooLarge = 413,
  Misdirected = 421,
  TooManyRequests = 429,
  ServerError = 500,
  Unavailable = 503,
};

struct HttpRequest {
  std::string method{};
  std::string path{};  // Decoded, without the query.
  std::map<std::string, std::string> query{};
  std::optional<std::string> host{};
  std::optional<std::string> origin{};
  std::optional<std::string> authorization{};
  std::optional<std::string> if_none_match{};
  std::string body{};
};

inline constexpr size_t kBodyBytesMax = 64 << 10;

struct Reply {
  Status status = Status::Ok;
  std::string type = "application/json";
  // Shared: a file of the page is in many replies at once.
  std::shared_ptr<const std::string> body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

[[nodiscard]] Reply json_reply(const Json& json, Status status = Status::Ok);
// RFC 9457. `more`: further members.
[[nodiscard]] Reply problem(Status status, std::string_view detail, const Json& more = {});

// Nothing: the request may be looked at. `token`: as the page has it.
[[nodiscard]] std::optional<Reply> refusal_of(const HttpRequest& request, std::string_view token);

// Goes with every reply.
[[nodiscard]] const std::vector<std::pair<std::string, std::string>>& security_headers();

}  // namespace clew::serve
