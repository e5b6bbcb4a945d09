// SPDX-License-Identifier: Apache-2.0
// The subjects of a cluster's messages: `clew.T.` and a kind, T being the tenant. Nodes, queries
// and tenants are words; `*` in place of one makes a pattern.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace clew::cluster {

// In place of a query or a reader: what a root says to those whose messages it cannot read, as they
// are of another version of clew. That can be told from its answer's first bytes.
inline constexpr std::string_view kOfStrangers = "_others";

// What whoever hears that says.
inline std::string not_understood(std::string_view url, std::string_view why) {
  return fmt::format("the root of {} is not understood: {}; both need the same version of clew",
                     url, why);
}

class Subjects {
 public:
  explicit Subjects(std::string_view tenant) : prefix_(fmt::format("clew.{}.", tenant)) {}

  [[nodiscard]] std::string control_of_all() const { return prefix_ + "ctl.all"; }
  // A node cannot be called "all".
  [[nodiscard]] std::string control(std::string_view node) const { return of("ctl", node); }
  [[nodiscard]] std::string beat(std::string_view node) const { return of("beat", node); }
  [[nodiscard]] std::string partial(std::string_view query, std::string_view shard,
                                    std::string_view node) const {
    return fmt::format("{}part.{}.{}.{}", prefix_, query, shard, node);
  }
  [[nodiscard]] std::string merged(std::string_view query, std::string_view shard) const {
    return fmt::format("{}merged.{}.{}", prefix_, query, shard);
  }
  [[nodiscard]] std::string again(std::string_view node) const { return of("again", node); }
  [[nodiscard]] std::string all_partials() const { return prefix_ + "part.>"; }
  [[nodiscard]] std::string ask() const { return prefix_ + "ask"; }
  [[nodiscard]] std::string status(std::string_view query) const { return of("status", query); }
  [[nodiscard]] std::string read() const { return prefix_ + "read"; }
  [[nodiscard]] std::string found(std::string_view reader) const { return of("found", reader); }
  [[nodiscard]] std::string row(std::string_view query) const { return of("row", query); }

  // Whose a beat or a partial says it is by its subject: what a server's permissions hold a node
  // to.
  static std::string_view node_of(std::string_view subject) {
    return subject.substr(subject.rfind('.') + 1);
  }

 private:
  [[nodiscard]] std::string of(std::string_view kind, std::string_view whose) const {
    return fmt::format("{}{}.{}", prefix_, kind, whose);
  }

  std::string prefix_;
};

}  // namespace clew::cluster
