// SPDX-License-Identifier: Apache-2.0
// Lists of probes (-l, -lv), and what is said of a program when it starts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "output/d/record.h"
#include "query/d/stability.h"

namespace clew::output::d {

std::string listing_heading();
std::string listing_row(const ProbeNames& probe);
// Under the row with -v: how stable the probe and its arguments are, and the arguments' types.
std::string listing_details(const query::d::ProviderStability& stability,
                            std::span<const std::string> argument_types);

// What was given: -s is a script, -n and its kin are descriptions.
enum class ProgramForm : uint8_t { Script, Description };
// "dtrace: script 'x.d' matched 3 probes"
std::string matched_text(ProgramForm form, std::string_view name, uint64_t probes);
std::string_view destructive_text();
// When a target of -c or -p has ended; `status` as of waitpid(2), where that is known.
std::string exited_text(uint64_t pid, std::optional<int> status);
// With -v: how stable the least stable of the probes is, and of what the clauses name.
std::string program_stability(ProgramForm form, std::string_view name,
                              const query::d::Stability& probes,
                              const query::d::Stability& statements);

}  // namespace clew::output::d
