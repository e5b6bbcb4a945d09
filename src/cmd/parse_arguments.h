// SPDX-License-Identifier: Apache-2.0
// Command line -> values, with the exit status that a wrong or a helped user gets, in the same
// words for all verbs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>

namespace clew::cmd {

// Also takes -v, which every verb has but dtrace, where it means something else. Nothing when the
// verb is to go on; else its exit status (help was printed, or an error).
std::optional<int> parse_arguments(CLI::App& app, int argument_count, const char* const* arguments);

// A value is a whole number from `least` to `most`; the error says what it is. `most` of
// INT32_MAX is that of process ids.
CLI::Validator whole_number(uint64_t least, uint64_t most = INT32_MAX);
// A value is what parse_duration() reads.
CLI::Validator duration();
// The same of parse_percent().
CLI::Validator percent();

// What is wrong with the command line, and where help is, on standard error: kExitUsage.
int wrong_usage(const CLI::App& app, std::string_view text);
// The same, of a word that looks like an option and is none.
int unknown_option(const CLI::App& app, std::string_view word);

}  // namespace clew::cmd
