// SPDX-License-Identifier: Apache-2.0
// What whoever keeps a machine forbids on it: /etc/clew/clew.toml.
//
//     [log]
//     require = true                       # no session that the log lacks
//
//     [limits]
//     allow_users = ["ann", "root"]        # nobody else
//     deny_programs = ["/usr/bin/gpg*"]    # are traced by nobody, root included
//
// Without the file nothing is forbidden. One that is there, and cannot be read, is wrong, or could
// have been written by others than root, forbids everything: there may be something that it says.
//
// They bind who uses this command. What the kernel lets a user do by other means is not theirs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "ledger/entry.h"
#include "target/pattern.h"

namespace clew::ledger {

inline constexpr const char* kSiteRulesPath = "/etc/clew/clew.toml";

struct SiteRules {
  std::string path{};  // Empty: there is no file.
  bool is_log_required = false;
  bool names_users = false;  // allow_users is there.
  std::vector<std::string> allow_users{};
  std::vector<target::Pattern> deny_programs{};  // Of the paths of executables.
};

// Errors: InvalidQuery with the place, Io, Refused, Limit.
Expected<SiteRules> parse_site_rules(std::string_view text, const std::string& name);
Expected<SiteRules> read_site_rules(const std::string& path = kSiteRulesPath);

// Refused where the rules say so.
Expected<void> check_user(const SiteRules& rules, const Who& who);
// A process whose program cannot be read is refused, if there is a program that may not be traced.
Expected<void> check_program(const SiteRules& rules, pid_t pid);
// The same by this machine's rules: in front of each change of a process.
Expected<void> check_program(pid_t pid);

}  // namespace clew::ledger
