// SPDX-License-Identifier: Apache-2.0
#include "cluster/nats_errors.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <openssl/x509_vfy.h>

#include "cluster/certificate.h"
#include "cluster/nats_greeting.h"

namespace clew::cluster {
namespace {

// A server that greets does so at once.
constexpr std::chrono::milliseconds kGreetingWait{500};
constexpr size_t kServersTold = 3;

// Of "SSL handshake error: 10:certificate has expired:depth=0:…"; 0: there is none.
int verify_error_in(std::string_view text) {
  constexpr std::string_view kBefore = "handshake error: ";
  const size_t at = text.find(kBefore);
  if (at == std::string_view::npos) return 0;
  int number = 0;
  const char* const begin = text.data() + at + kBefore.size();
  (void)std::from_chars(begin, text.data() + text.size(), number);
  return number;
}

std::string certificate_problem(std::string_view text, const NatsOptions& options,
                                const NatsAddress& address, const std::string& where) {
  switch (verify_error_in(text)) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("the certificate of {} has expired, or this machine's clock is wrong",
                         where);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("the certificate of {} is not valid yet, or this machine's clock is wrong",
                         where);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format(
          "the certificate of {} is for another host than '{}': the URL needs a name that stands "
          "in it (subjectAltName)",
          where, address.hosts[0]);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return options.ca_file.empty()
                 ? fmt::format(
                       "the certificate of {} is not trusted: no authority that this system "
                       "knows has signed it; --ca FILE names one that has",
                       where)
                 : fmt::format(
                       "the certificate of {} is not trusted: '{}' (--ca) has not signed it", where,
                       options.ca_file);
    default:
      return fmt::format("the certificate of {} is not trusted: {}", where, without_place(text));
  }
}

std::string who_is_not_let_in(const NatsOptions& options, const NatsAddress& address,
                              const std::string& where) {
  if (!address.user.empty()) {
    return fmt::format("{} does not let user '{}' in: the name or the password is wrong", where,
                       address.user);
  }
  if (!address.token.empty()) return where + " does not take this token";
  if (!options.credentials_file.empty()) {
    return fmt::format("{} does not take the credentials of '{}'", where, options.credentials_file);
  }
  if (!options.certificate_file.empty()) {
    const auto certificate = read_certificate(options.certificate_file);
    return fmt::format("{} does not let in who has the certificate '{}': none of its users is {}",
                       where, options.certificate_file,
                       certificate ? certificate->name : "called so");
  }
  return fmt::format(
      "{} wants to know who this is: USER:PASSWORD@ in front of the URL's host, --credentials FILE "
      "or --certificate FILE",
      where);
}

// Behind a handshake that went well a server ends the connection when it does not take ours.
std::string own_certificate_problem(const NatsOptions& options, const std::string& where) {
  if (options.certificate_file.empty()) {
    return fmt::format("{} wants a certificate of this end: --certificate FILE and --key FILE",
                       where);
  }
  const auto certificate = read_certificate(options.certificate_file);
  std::string_view why = "the server does not know who signed it";
  if (certificate && certificate->time == Certificate::Time::Over) why = "it has expired";
  if (certificate && certificate->time == Certificate::Time::NotYet) why = "it is not valid yet";
  return fmt::format("{} does not take the certificate '{}': {}", where, options.certificate_file,
                     why);
}

// Of one server, as it greets itself.
Error error_of_server(size_t i, std::string_view text, const NatsOptions& options,
                      const NatsAddress& address) {
  const std::string where = address.shown(i);
  const auto greeting = greet_nats(address.servers[i], where, kGreetingWait);
  if (!greeting) return greeting.error();
  if (const auto is_new = check_version(*greeting, where); !is_new) return is_new.error();
  if (address.is_tls && greeting->wants_certificate)
    return {ErrorCode::Refused, own_certificate_problem(options, where)};
  return {ErrorCode::Io, fmt::format("no bus answers at {}: {}", where, without_place(text))};
}

}  // namespace

std::string without_place(std::string_view text) {
  constexpr std::string_view kEnd = "): ";
  const size_t end = text.substr(0, 1) == "(" ? text.find(kEnd) : std::string_view::npos;
  return std::string(end == std::string_view::npos ? text : text.substr(end + kEnd.size()));
}

std::string not_permitted(std::string_view does, std::string_view subject) {
  return fmt::format("this end may not {} '{}': the server's list for its user lacks that", does,
                     subject);
}

// Permissions Violation for Publish to "a.b"
std::string not_permitted(std::string_view text) {
  const size_t begin = text.find('"');
  const size_t end = text.rfind('"');
  if (begin == std::string_view::npos || end == begin)
    return fmt::format("the server does not permit this end something: {}", without_place(text));
  const bool publishes = text.find("Publish") != std::string_view::npos;
  return not_permitted(publishes ? "publish to" : "subscribe to",
                       text.substr(begin + 1, end - begin - 1));
}

Error connection_error(natsStatus status, std::string_view text, const NatsOptions& options,
                       const NatsAddress& address) {
  const std::string where = address.shown();
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
      return {ErrorCode::Refused, who_is_not_let_in(options, address, where)};
    case NATS_SSL_ERROR:
      // libnats goes over to TLS by itself, and believes what the system believes.
      if (!address.is_tls) break;
      return {ErrorCode::Refused, certificate_problem(text, options, address, where)};
    case NATS_SECURE_CONNECTION_REQUIRED:
      break;
    case NATS_SECURE_CONNECTION_WANTED:
      return {ErrorCode::Refused,
              fmt::format("{} has no TLS: its URL begins nats://, and what goes there can be read "
                          "on the way",
                          where)};
    default: {
      Error first = error_of_server(0, text, options, address);
      const size_t told = std::min(address.servers.size(), kServersTold);
      for (size_t i = 1; i < told; ++i)
        first.message += "; " + error_of_server(i, text, options, address).message;
      return first;
    }
  }
  return {ErrorCode::Refused, fmt::format("{} wants TLS: its URL begins tls://", where)};
}

}  // namespace clew::cluster
