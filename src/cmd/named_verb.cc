// SPDX-License-Identifier: Apache-2.0
#include "cmd/named_verb.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file_name.h"
#include "cmd/answer_here.h"
#include "cmd/console.h"
#include "cmd/duration.h"
#include "cmd/installed.h"
#include "cmd/outputs.h"
#include "cmd/parse_arguments.h"
#include "cmd/process_options.h"
#include "cmd/request.h"
#include "cmd/verb_choice.h"
#include "cmd/verbs.h"
#include "engine/dtrace/request.h"
#include "target/process.h"

namespace clew::cmd {
namespace {

struct VerbArguments {
  NamedVerb verb;  // With the values that were given.
  engine::Chosen processes{};
  std::string command{};
  bool follow = false;
  bool yes = false;
  std::string variant{};
  std::string for_text{};
  std::string every_text{};
  OutputArguments output{};
  std::vector<std::string> folders{};
  std::vector<std::string> vocabularies{};
  bool show = false;
  bool quiet = false;
};

constexpr std::string_view kTake = "take";

bool has_server_variants(const NamedVerb& verb) {
  return std::any_of(verb.texts.begin(), verb.texts.end(), [](const VerbText& text) {
    return text.when.kind == VerbCondition::Kind::Program ||
           text.when.kind == VerbCondition::Kind::Library;
  });
}

CLI::Validator validator_of(const VerbParameter& parameter) {
  switch (parameter.kind) {
    case VerbParameter::Kind::Duration:
      return duration();
    case VerbParameter::Kind::Number:
      return whole_number(1);
    case VerbParameter::Kind::Text:
    case VerbParameter::Kind::Code:
      break;
  }
  const auto problem_of = [parameter](const std::string& value) {
    const Expected<void> checked = check_choice(parameter, value);
    return checked ? std::string() : checked.error().message;
  };
  return CLI::Validator(problem_of, "");
}

// Of scripts: what does not stay on a screen has room for more.
constexpr const char* kRowsAtEnd = "1000";

void declare_parameters(CLI::App& app, NamedVerb& verb) {
  const bool is_script = verb.texts.back().language == VerbLanguage::D;
  for (VerbParameter& parameter : verb.parameters) {
    std::string usual = parameter.value.empty() ? "" : fmt::format(" ({})", parameter.value);
    if (is_script && parameter.name == kTake)
      usual = fmt::format(" ({}; {} of one answer at the end)", parameter.value, kRowsAtEnd);
    app.add_option("--" + parameter.name, parameter.value, parameter.words + usual)
        ->check(validator_of(parameter))
        ->default_str("");
  }
}

void declare(CLI::App& app, VerbArguments& arguments) {
  declare_parameters(app, arguments.verb);
  declare_processes(app, arguments.processes, "look at");
  auto* const command =
      app.add_option("-c,--command", arguments.command, "start this command and look at it");
  for (const char* option : kProcessOptions)
    command->excludes(app.get_option(option));
  app.add_flag("-f,--follow", arguments.follow, "its children, too");
  if (has_server_variants(arguments.verb)) {
    app.add_option("--as", arguments.variant,
                   "what it is, where the process does not say it by its name");
  }
  app.add_option("--for", arguments.for_text, "end after this time: 10s, 500ms, 2m")
      ->check(duration());
  app.add_option("--every", arguments.every_text, "an answer each interval, of it alone")
      ->check(duration());
  declare_outputs(app, arguments.output);
  app.add_option("--vocabulary", arguments.vocabularies, "more files or directories of tracepoints")
      ->allow_extra_args(false);
  app.add_option("--verbs", arguments.folders, "more verbs, in this folder")
      ->allow_extra_args(false);
  app.add_flag("--show", arguments.show, "print the query or script instead of running it");
  app.add_flag("-y,--yes", arguments.yes, "trace more than 10000 sites");
  app.add_flag("-q,--quiet", arguments.quiet, "only the answer and errors");
}

// The format of the answer where it has one alone.
std::string format_name(const VerbArguments& arguments) {
  const std::string file =
      arguments.output.files.empty() ? std::string(kStandardOutput) : arguments.output.files[0];
  return std::string(format_of(arguments.output, file).name);
}

// One that stays on the screen.
bool is_drawn_live(const VerbArguments& arguments) {
  const bool is_there = arguments.output.files.empty() && isatty(STDOUT_FILENO) == 1;
  const std::string format = format_name(arguments);
  return is_there && (format == "text" || format == "chart");
}

// Of what the processes are, as a condition of D.
Expected<std::string> traced_condition(const VerbArguments& arguments, bool with_children) {
  if (!arguments.command.empty()) return std::string("progenyof($target)");
  if (!arguments.processes.names_some()) return std::string("pid != $pid");
  const std::vector<pid_t> pids = CLEW_TRY(engine::find_chosen(arguments.processes));
  constexpr size_t kPidsMax = 64;
  if (pids.size() > kPidsMax) {
    return fail(ErrorCode::Limit, fmt::format("these are {} processes, and a script takes {}; name "
                                              "fewer, or none for all of the machine",
                                              pids.size(), kPidsMax));
  }
  std::vector<std::string> words(pids.size());
  std::transform(pids.begin(), pids.end(), words.begin(), [with_children](pid_t pid) {
    return with_children ? fmt::format("progenyof({})", pid) : fmt::format("pid == {}", pid);
  });
  return fmt::format("({})", fmt::join(words, " || "));
}

// Besides its parameters a script has ${traced}, the condition that a process is one of those that
// are meant, ${family}, the same with all that come from these, ${now}, the probes at which it
// prints, and ${page}, with which a page begins that takes the place of the last one.
Expected<std::string> filled_script(const VerbText& text, const VerbArguments& arguments) {
  std::string script = text.text;
  if (format_name(arguments) == "text") script += text.text_tail;
  if (!arguments.for_text.empty()) {
    script += fmt::format("\nprofile:::tick-{}ns\n{{\n\texit(0);\n}}\n",
                          CLEW_TRY(parse_duration(arguments.for_text)));
  }
  std::vector<VerbParameter> values = arguments.verb.parameters;
  const auto add = [&values](const char* name, std::string value) {
    values.push_back(
        {.name = name, .kind = VerbParameter::Kind::Code, .value = std::move(value), .words = {}});
  };
  add("traced", CLEW_TRY(traced_condition(arguments, /*with_children=*/arguments.follow)));
  add("family", CLEW_TRY(traced_condition(arguments, /*with_children=*/true)));
  const bool is_live = is_drawn_live(arguments) || !arguments.every_text.empty();
  const std::string& every =
      arguments.every_text.empty() ? arguments.verb.every : arguments.every_text;
  if (is_live && !every.empty()) {
    add("now", fmt::format("profile:::tick-{}ns, END", CLEW_TRY(parse_duration(every))));
  } else {
    add("now", "END");
  }
  add("page", is_drawn_live(arguments) ? "\\f" : "");
  for (VerbParameter& value : values)
    if (value.name == kTake && !value.is_given && !is_live) value.value = kRowsAtEnd;
  return filled_text(script, VerbLanguage::D, values);
}

Expected<std::string> filled_query(const VerbText& text, const VerbArguments& arguments) {
  std::string query =
      CLEW_TRY(filled_text(text.text, VerbLanguage::Query, arguments.verb.parameters));
  std::string every = arguments.every_text;
  if (every.empty() && is_drawn_live(arguments)) every = arguments.verb.every;
  if (!every.empty()) query += fmt::format("every {}\n", every);
  if (!arguments.for_text.empty()) query += fmt::format("for {}\n", arguments.for_text);
  return query;
}

Expected<int> run_script(const VerbText& text, std::string script, const VerbArguments& arguments) {
  engine::DtraceRequest request;
  request.extension_folder = extension_folder();
  request.programs.push_back({.is_file = true, .text = text.path, .content = std::move(script)});
  request.options.emplace_back("quiet", "");
  if (const std::string format = format_name(arguments); format != "text")
    request.options.emplace_back("format", format);
  if (!arguments.command.empty()) request.commands.push_back(arguments.command);
  if (arguments.processes.names_some())
    request.pids = CLEW_TRY(engine::find_chosen(arguments.processes));
  if (arguments.output.files.size() > 1) {
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("clew {} is a script, which writes one file: one -o", arguments.verb.name));
  }
  if (!arguments.output.files.empty() && arguments.output.files[0] != kStandardOutput)
    request.output_path = arguments.output.files[0];
  request.truncates = true;
  const FileDescriptor stop = CLEW_TRY(signals_as_descriptor(ReaderGone::Ends));
  return engine::run_dtrace(request, stop.get());
}

Expected<int> run_as_query(const VerbText& text, std::string query,
                           const VerbArguments& arguments) {
  RequestArguments wanted;
  wanted.query = query;
  wanted.processes = arguments.processes;
  wanted.command = arguments.command;
  wanted.vocabularies = arguments.vocabularies;
  wanted.follow = arguments.follow;
  wanted.yes = arguments.yes;
  if (!arguments.verb.extension.empty()) wanted.extensions = {arguments.verb.extension};
  engine::Request request = CLEW_TRY(request_of(wanted));
  request.text = {.name = text.path, .text = std::move(query)};
  OutputArguments places = arguments.output;
  places.about = about(request, arguments.command);
  Outputs outputs;
  CLEW_TRY(outputs.open(places));
  request.accept = [&outputs](output::Columns columns) { return outputs.accept(columns); };
  const Expected<void> answered = answer_here(request,
                                              {.is_quiet = arguments.quiet,
                                               .nothing = arguments.verb.nothing,
                                               .demangled = arguments.verb.demangled},
                                              outputs);
  int status = answered ? kExitAnswered : report(answered.error());
  for (const Error& error : outputs.close(answered ? nullptr : &answered.error()))
    status = report(error);
  return status;
}

Expected<void> check_needs(const VerbArguments& arguments) {
  const NamedVerb& verb = arguments.verb;
  const bool says_who = arguments.processes.names_some() || !arguments.command.empty();
  if (verb.needs_process && !says_who) {
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("clew {} is about a process: -p PID, -n NAME, or -c COMMAND", verb.name));
  }
  for (const pid_t pid : arguments.processes.pids) {
    if (target::read_process(pid)) continue;
    return fail(ErrorCode::NotFound,
                fmt::format("there is no process {}; ps -e has those that are there", pid));
  }
  return {};
}

Expected<void> check_rights(const VerbText& text, const VerbArguments& arguments) {
  const NamedVerb& verb = arguments.verb;
  const bool needs_root = text.needs_root.value_or(verb.needs_root);
  if (!needs_root || geteuid() == 0 || arguments.show) return {};
  return fail(ErrorCode::Refused,
              fmt::format("clew {} asks the kernel, which answers root alone: sudo clew {} …",
                          verb.name, verb.name));
}

// An option that would change nothing is a mistake of who gives it.
Expected<void> check_options(const VerbText& text, const VerbArguments& arguments) {
  const bool is_script = text.language == VerbLanguage::D;
  const bool has_tail = format_name(arguments) == "text";
  const std::string name =
      arguments.verb.name + (text.variant.empty() ? "" : fmt::format(" ({})", text.variant));
  for (const VerbParameter& parameter : arguments.verb.parameters) {
    const std::string place = fmt::format("${{{}}}", parameter.name);
    const bool is_in_tail = text.text_tail.find(place) != std::string::npos;
    const bool is_used = text.text.find(place) != std::string::npos || (has_tail && is_in_tail);
    if (!parameter.is_given || is_used) continue;
    return fail(ErrorCode::InvalidQuery,
                fmt::format("clew {} makes no use of --{}{}; leave it out", name, parameter.name,
                            is_in_tail ? " where the answer is no text" : ""));
  }
  if (is_script && (arguments.yes || !arguments.vocabularies.empty())) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("clew {} is a script, which makes no use of {}; leave it out", name,
                            arguments.yes ? "--yes" : "--vocabulary"));
  }
  return {};
}

Expected<int> run_verb_text(VerbArguments& arguments) {
  if (arguments.output.format.empty() && arguments.output.files.empty())
    arguments.output.format = arguments.verb.form;
  CLEW_TRY(check_needs(arguments));
  const std::vector<std::string> words = CLEW_TRY(split_command(arguments.command));
  const VerbWish wish = {.variant = arguments.variant,
                         .format = format_name(arguments),
                         .program = words.empty() ? "" : std::string(file_name_of(words[0])),
                         .processes = &arguments.processes};
  const VerbText& text = *CLEW_TRY(choose_text(arguments.verb, wish));
  CLEW_TRY(check_options(text, arguments));
  CLEW_TRY(check_rights(text, arguments));
  const bool is_script = text.language == VerbLanguage::D;
  std::string filled =
      CLEW_TRY(is_script ? filled_script(text, arguments) : filled_query(text, arguments));
  if (arguments.show) {
    (void)std::fwrite(filled.data(), 1, filled.size(), stdout);
    return kExitAnswered;
  }
  return is_script ? run_script(text, std::move(filled), arguments)
                   : run_as_query(text, std::move(filled), arguments);
}

}  // namespace

Expected<Verbs> named_verbs(int argument_count, const char* const* arguments) {
  constexpr std::string_view kOption = "--verbs";
  std::vector<std::string> more;
  for (int i = 1; i < argument_count; ++i) {
    const std::string_view word = arguments[i];
    if (word == kOption && i + 1 < argument_count) more.emplace_back(arguments[i + 1]);
    if (word.starts_with("--verbs=")) more.emplace_back(word.substr(kOption.size() + 1));
  }
  Verbs verbs = read_verbs(verb_folders(more));
  for (const Verbs::FolderProblem& problem : verbs.problems) {
    if (std::find(more.begin(), more.end(), problem.folder) != more.end())
      return tl::unexpected(problem.error);
  }
  return verbs;
}

int named_verb(const NamedVerb& verb, int argument_count, const char* const* arguments) {
  if (verb.problem) return report(*verb.problem);
  CLI::App app{verb.help, "clew " + verb.name};
  VerbArguments parsed{.verb = verb};
  try {
    declare(app, parsed);
  } catch (const CLI::OptionAlreadyAdded& problem) {
    return report({ErrorCode::InvalidQuery,
                   fmt::format("{}: error: a parameter has the name of an option that every verb "
                               "has: {}",
                               verb.texts.back().path, problem.what())});
  }
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  for (VerbParameter& parameter : parsed.verb.parameters)
    parameter.is_given = app.get_option("--" + parameter.name)->count() > 0;
  const Expected<int> status = run_verb_text(parsed);
  return status ? *status : report(status.error());
}

}  // namespace clew::cmd
