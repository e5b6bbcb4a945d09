// SPDX-License-Identifier: Apache-2.0
#include "cmd/cluster_arguments.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cluster/nats_address.h"
#include "cmd/parse_arguments.h"

namespace clew::cmd {

void declare_identity(CLI::App& app, ClusterArguments& arguments, CLI::Option* url) {
  const auto with_url = [&](const char* name, std::string& value, const char* what) {
    app.add_option(name, value, what)->needs(url);
  };
  with_url("--tenant", arguments.tenant, "whose cluster it is, of several on the same servers");
  with_url("--ca", arguments.ca_file, "the certificate of who signed the servers' (PEM)");
  with_url("--certificate", arguments.certificate_file,
           "the certificate of this end, where the server wants one (PEM)");
  with_url("--key", arguments.key_file, "the key of --certificate (PEM)");
  app.get_option("--certificate")->needs(app.get_option("--key"));
  app.get_option("--key")->needs(app.get_option("--certificate"));
  with_url("--credentials", arguments.credentials_file, "a file of NATS credentials");
}

CLI::Option* declare_cluster(CLI::App& app, ClusterArguments& arguments) {
  CLI::Option* const url =
      app.add_option("--cluster", arguments.url,
                     "the cluster's servers of NATS: nats://HOST:4222 or tls://HOST:4222")
          ->check([](const std::string& text) {
            return text.empty() ? std::string("the cluster's URL is empty") : std::string();
          });
  declare_identity(app, arguments, url);
  app.add_option("--replicas", arguments.replicas,
                 "on how many of the servers logs and keys are kept: 1 or 3")
      ->needs(url)
      ->check(CLI::IsMember({1, 3}).description(""));
  return url;
}

cluster::NatsOptions nats_options(const ClusterArguments& arguments, const std::string& kind) {
  std::string inbox = "_INBOX." + kind;
  std::replace(inbox.begin(), inbox.end(), ' ', '.');
  return {.url = arguments.url,
          .name = "clew " + kind,
          .ca_file = arguments.ca_file,
          .certificate_file = arguments.certificate_file,
          .key_file = arguments.key_file,
          .credentials_file = arguments.credentials_file,
          .inbox_prefix = std::move(inbox),
          .replicas = arguments.replicas};
}

namespace {

// What is for TLS does nothing without it, and whoever gives it wants it.
Expected<void> check_tls(const ClusterArguments& arguments) {
  const auto address = cluster::parse_nats_address(arguments.url);
  const bool is_plain = address && !address->is_tls;
  for (const auto& [option, value] : {std::pair("--ca", &arguments.ca_file),
                                      std::pair("--certificate", &arguments.certificate_file)}) {
    if (!is_plain || value->empty()) continue;
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("{} is for TLS, and {} has none: its URL begins tls:// where the server "
                    "has TLS",
                    option, address->shown()));
  }
  return {};
}

}  // namespace

Expected<std::unique_ptr<cluster::Bus>> connect(const ClusterArguments& arguments,
                                                const std::string& kind, const std::string& name) {
  CLEW_TRY(check_tls(arguments));
  const bool has_name = !name.empty();
  auto connected =
      cluster::connect_nats(nats_options(arguments, has_name ? kind + " " + name : kind));
  const bool is_others =
      !connected && has_name && connected.error().message.find("_INBOX.") != std::string::npos;
  if (!is_others) return connected;
  return fail(connected.error().code,
              fmt::format("{}; it may know this end by another name than {}",
                          connected.error().message, name));
}

bool is_on_loopback(const ClusterArguments& arguments) {
  const auto address = cluster::parse_nats_address(arguments.url);
  return address && std::all_of(address->hosts.begin(), address->hosts.end(),
                                [](const std::string& host) { return cluster::is_loopback(host); });
}

std::string shown_url(const ClusterArguments& arguments) {
  const auto address = cluster::parse_nats_address(arguments.url);
  return address ? address->shown() : arguments.url;
}

namespace {

constexpr size_t kLabelMost = 63;

// What can be typed, and printed, as it is.
bool is_label_text(std::string_view text, std::string_view signs) {
  return !text.empty() && text.size() <= kLabelMost &&
         std::all_of(text.begin(), text.end(), [signs](char one) {
           return std::isalnum(static_cast<unsigned char>(one)) != 0 ||
                  signs.find(one) != std::string_view::npos;
         });
}

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char one) { return one < ' ' || one > '~'; }, '?');
  return text.size() > kLabelMost ? text.substr(0, kLabelMost) + "…" : text;
}

}  // namespace

Expected<std::map<std::string, std::string>> labels_of(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> labels;
  for (const std::string& text : texts) {
    const size_t end = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, end);
    const std::string value = end < text.size() ? text.substr(end + 1) : "";
    if (!is_label_text(name, "_-.") || !is_label_text(value, "_-./:@+")) {
      return fail(
          ErrorCode::InvalidQuery,
          fmt::format("'{}' is no label: one is NAME=VALUE, as in zone=a, of letters, digits "
                      "and _-. (a value also /:@+), {} of each at most",
                      printable(text), kLabelMost));
    }
    if (!labels.emplace(name, value).second && labels[name] != value) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("label {} is given twice: {} and {}", name, labels[name], value));
    }
  }
  return labels;
}

}  // namespace clew::cmd
