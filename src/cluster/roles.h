// SPDX-License-Identifier: Apache-2.0
// Who may ask what: a file in TOML that nodes and roots are given, read strictly.
//
//     [keys.alice]                       # As 'clew key' prints it.
//     key = "…"
//     role = "web"
//
//     [roles.web]
//     sources = ["nginx!ngx_http_*"]     # What may be traced: patterns (target/pattern.h).
//     processes = ["nginx"]              # In which, by name.
//     memory = false                     # Whether their memory may be read,
//     kernel = false                     # the kernel asked,
//     cause = false                      # and events be joined by cause.
//     queries = 4                        # How many at once each key may ask,
//     interval_ms = 1000                 # and how short its intervals may be.
//
// What is not named is not allowed, but for the last two, which are limits. A pattern of a query
// has to be within one of the role's; "*" alone is all. The names that are compared: of functions
// "module!function", of static probes "usdt:provider:name", of the kernel "syscall:read",
// "kernel:vfs_read", "tracepoint:sched:sched_switch", "profile".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cluster/message.h"
#include "cluster/signing.h"
#include "query/diagnostic.h"
#include "query/query.h"

namespace clew::cluster {

struct Role {
  std::string name;
  std::vector<std::string> sources{};
  std::vector<std::string> processes{};
  bool memory = false;
  bool kernel = false;
  bool cause = false;
  uint64_t queries = 0;  // 0: no limit.
  int64_t interval_ns = 0;
  bool operator==(const Role&) const = default;
};

class Roles {
 public:
  // Errors: InvalidQuery with FILE:LINE:COLUMN; Refused: others may write the file; Io; Limit.
  static Expected<Roles> read(const std::string& path);
  static Expected<Roles> parse(std::string_view text, const std::string& name);

  // Refused: nobody is called so here.
  [[nodiscard]] Expected<const Role*> role_of(const PublicKey& key) const;
  // "alice (role web)", for a log; of a key that is not here, the key.
  [[nodiscard]] std::string shown(const PublicKey& key) const;
  // How many may ask.
  [[nodiscard]] size_t keys() const { return keys_.size(); }

 private:
  struct Holder {
    std::string name;
    std::string role;
  };
  std::map<PublicKey, Holder> keys_;
  std::map<std::string, Role> roles_;
};

// Of a file that is read again when it is another one: who is taken out of it may ask nothing more.
class RolesFile {
 public:
  static Expected<RolesFile> open(const std::string& path);
  // What is to be told: that it has changed, or cannot be read, in which case nothing changes.
  std::optional<std::string> refresh();
  // The same object, whatever it becomes.
  [[nodiscard]] const Roles& roles() const { return *roles_; }

 private:
  // Of a file, which is not the same if one of these is not.
  struct Stamp {
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  explicit RolesFile(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Stamp stamp() const;

  std::string path_;
  Stamp read_;
  std::unique_ptr<Roles> roles_ = std::make_unique<Roles>();
};

// How much it asks, beside `queries` that it has asked and that run. Limit.
Expected<void> check_limits(const Role& role, size_t queries, int64_t interval_ns);
// What can be known without any program: names of processes, and where the text can be understood
// alone, all of it. Refused, with the place and what is not allowed.
Expected<void> check_text(const Role& role, const query::Text& text,
                          const std::vector<std::string>& name_patterns);
// All that it reads, now that every name is known.
Expected<void> check_query(const Role& role, const query::Query& query, const query::Text& text,
                           const std::vector<std::string>& name_patterns);

}  // namespace clew::cluster
