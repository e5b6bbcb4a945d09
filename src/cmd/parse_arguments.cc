// SPDX-License-Identifier: Apache-2.0
#include "cmd/parse_arguments.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/nearest.h"
#include "cmd/duration.h"
#include "cmd/percent.h"
#include "cmd/verbs.h"

namespace clew::cmd {
namespace {

int unexpected(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining();
  const auto option = std::find_if(left.begin(), left.end(), [](const std::string& word) {
    return word.size() > 1 && word.front() == '-';
  });
  if (option != left.end()) return unknown_option(app, *option);
  return wrong_usage(app, fmt::format("'{}' is one argument too many", left.front()));
}

// An option without its value, or with two.
int wrong_count(const CLI::App& app, std::string_view parser_text) {
  const std::string name(parser_text.substr(0, parser_text.find(':')));
  const CLI::Option* const option = app.get_option_no_throw(name);
  const bool is_repeated = option != nullptr && option->count() > 1;
  return wrong_usage(
      app, fmt::format("{}: {}", name, is_repeated ? "given more than once" : "no value is given"));
}

}  // namespace

std::optional<int> parse_arguments(CLI::App& app, int argument_count,
                                   const char* const* arguments) {
  int verbose = 0;
  app.add_flag("-v,--verbose", verbose, "say on standard error what is done; -vv: in detail");
  try {
    app.parse(argument_count, arguments);
    if (verbose > 0) log_to_standard_error(verbose > 1 ? LogLevel::Details : LogLevel::Steps);
  } catch (const CLI::ExtrasError&) {
    return unexpected(app);
  } catch (const CLI::ArgumentMismatch& problem) {
    return wrong_count(app, problem.what());
  } catch (const CLI::Success& help) {
    (void)app.exit(help);
    return kExitAnswered;
  } catch (const CLI::ParseError& problem) {
    return wrong_usage(app, problem.what());
  }
  return std::nullopt;
}

CLI::Validator whole_number(uint64_t least, uint64_t most) {
  const auto problem_of = [least, most](const std::string& text) {
    uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    const bool is_number = read.ec == std::errc() && read.ptr == end;
    if (is_number && number >= least && number <= most) return std::string();
    return fmt::format("'{}' is no whole number from {} to {}", text, least, most);
  };
  return CLI::Validator(problem_of, "");
}

CLI::Validator duration() {
  const auto problem_of = [](const std::string& text) {
    const auto read = parse_duration(text);
    return read ? std::string() : read.error().message;
  };
  return CLI::Validator(problem_of, "");
}

CLI::Validator percent() {
  const auto problem_of = [](const std::string& text) {
    const auto read = parse_percent(text);
    return read ? std::string() : read.error().message;
  };
  return CLI::Validator(problem_of, "");
}

int wrong_usage(const CLI::App& app, std::string_view text) {
  fmt::print(stderr, "clew: error: {}; see {} --help\n", text, app.get_name());
  return kExitUsage;
}

int unknown_option(const CLI::App& app, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  }
  const std::vector<std::string_view> all(names.begin(), names.end());
  const std::string near = nearest_name(word, all);
  if (near.empty()) return wrong_usage(app, fmt::format("no option '{}'", word));
  fmt::print(stderr, "clew: error: no option '{}'; did you mean '{}'?\n", word, near);
  return kExitUsage;
}

}  // namespace clew::cmd
