// SPDX-License-Identifier: Apache-2.0
#include "serve/http_message.h"

#include <algorithm>
#include <array>

#include <openssl/crypto.h>

namespace clew::serve {
namespace {

std::string_view title_of(Status status) {
  switch (status) {
    case Status::Ok:
    case Status::Created:
    case Status::NotModified:
      return "fine";
    case Status::BadRequest:
      return "not understood";
    case Status::Unauthorized:
      return "no token, or a wrong one";
    case Status::Forbidden:
      return "not allowed";
    case Status::NotFound:
      return "not there";
    case Status::MethodNotAllowed:
      return "not that way";
    case Status::Conflict:
      return "too late";
    case Status::ContentTooLarge:
      return "too long";
    case Status::Misdirected:
      return "not this server";
    case Status::TooManyRequests:
      return "too many sessions";
    case Status::ServerError:
      return "failed";
    case Status::Unavailable:
      return "too much at once";
  }
  return "";
}

bool is_port(std::string_view text) {
  constexpr size_t kDigitsMax = 5;
  return !text.empty() && text.size() <= kDigitsMax &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A name of the loopback interface, any port: a tunnel's end may be another than ours. Names that
// an attacker's DNS can lead to 127.0.0.1 are not among them (rebinding).
bool is_loopback_host(std::string_view host) {
  constexpr std::array<std::string_view, 3> kNames = {"127.0.0.1", "localhost", "[::1]"};
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) {
    if (!host.starts_with(name)) return false;
    const std::string_view rest = host.substr(name.size());
    return rest.empty() || (rest.front() == ':' && is_port(rest.substr(1)));
  });
}

// In a time that does not depend on what is alike.
bool is_same_secret(std::string_view given, std::string_view ours) {
  return given.size() == ours.size() && CRYPTO_memcmp(given.data(), ours.data(), ours.size()) == 0;
}

}  // namespace

Reply json_reply(const Json& json, Status status) {
  return {.status = status,
          .body = std::make_shared<const std::string>(output::json_text(json)),
          .headers = {{"Cache-Control", "no-store"}}};
}

Reply problem(Status status, std::string_view detail, const Json& more) {
  Json json = {
      {"title", title_of(status)}, {"detail", detail}, {"status", static_cast<int>(status)}};
  if (more.is_object()) json.update(more);
  Reply reply = json_reply(json, status);
  reply.type = "application/problem+json";
  return reply;
}

std::optional<Reply> refusal_of(const HttpRequest& request, std::string_view token) {
  if (!request.host || !is_loopback_host(*request.host)) {
    return problem(Status::Misdirected,
                   "the host of a request is localhost or 127.0.0.1; from other machines: ssh -L");
  }
  if (request.origin && *request.origin != "http://" + *request.host)
    return problem(Status::Forbidden, "only the server's own page may ask");
  if (!request.path.starts_with("/api/")) return std::nullopt;
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = request.authorization ? *request.authorization : kBearer;
  if (!given.starts_with(kBearer) || !is_same_secret(given.substr(kBearer.size()), token))
    return problem(Status::Unauthorized, "open the URL that clew ui has printed");
  return std::nullopt;
}

const std::vector<std::pair<std::string, std::string>>& security_headers() {
  static const std::vector<std::pair<std::string, std::string>> kHeaders = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
       "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
       "frame-ancestors 'none'; require-trusted-types-for 'script'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
  return kHeaders;
}

}  // namespace clew::serve
