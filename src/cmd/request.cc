// SPDX-License-Identifier: Apache-2.0
#include "cmd/request.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <sys/stat.h>

#include "cmd/installed.h"
#include "cmd/parse_arguments.h"
#include "cmd/process_options.h"

namespace clew::cmd {
namespace {

// Also what a shell makes of <(…), and /dev/stdin.
bool is_file(const std::string& path) {
  struct stat status {};
  return path.find('\n') == std::string::npos && stat(path.c_str(), &status) == 0 &&
         (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) ||
          (S_ISCHR(status.st_mode) && path == "/dev/stdin"));
}

// Every query has a space or a parenthesis.
bool looks_like_path(const std::string& argument) {
  const bool is_word = argument.find_first_of(" \t\n(\"") == std::string::npos;
  return is_word && (argument.find('/') != std::string::npos || argument.ends_with(".clew"));
}

Expected<query::Text> read_text(const std::string& argument) {
  if (!is_file(argument) && looks_like_path(argument)) {
    return fail(ErrorCode::NotFound, fmt::format("no such file: {}", argument));
  }
  if (!is_file(argument)) return query::Text{.name = "query", .text = argument};
  std::ifstream file(argument, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return fail(ErrorCode::Io, fmt::format("cannot read {}", argument));
  return query::Text{.name = argument, .text = std::move(text)};
}

// One word of split_command, and what is left.
class Words {
 public:
  explicit Words(const std::string& text) : text_(text) {}

  Expected<std::vector<std::string>> all() {
    std::vector<std::string> words;
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || text_[at_] == '\t') {
        ++at_;
      } else {
        words.push_back(CLEW_TRY(word()));
      }
    }
    return words;
  }

 private:
  Expected<std::string> word() {
    std::string result;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\t') {
      const char c = text_[at_++];
      if (c == '\'' || c == '"') {
        CLEW_TRY(quoted(c, result));
      } else if (c == '\\' && at_ < text_.size()) {
        result += text_[at_++];
      } else {
        result += c;
      }
    }
    return result;
  }

  Expected<void> quoted(char quote, std::string& result) {
    while (at_ < text_.size() && text_[at_] != quote) {
      const bool escaped = quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size();
      if (escaped) ++at_;
      result += text_[at_++];
    }
    if (at_ == text_.size()) {
      return fail(ErrorCode::InvalidQuery, fmt::format("a {} in the command is not closed", quote));
    }
    ++at_;
    return {};
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

void declare_request(CLI::App& app, RequestArguments& arguments) {
  app.add_option("query", arguments.query, "the query, or a file that holds it")->required();
  // One value each time: the query may stand behind any of them.
  const auto repeated = [&](const char* name, auto& values, const char* what) {
    return app.add_option(name, values, what)->allow_extra_args(false);
  };
  declare_processes(app, arguments.processes, "trace");
  auto* const command =
      app.add_option("-c,--command", arguments.command, "start this command and trace it");
  for (const char* option : kWhoseOptions)
    command->excludes(app.get_option(option));
  repeated("--vocabulary", arguments.vocabularies, "more files or directories of tracepoints");
  repeated("--ext", arguments.extensions,
           "functions in C that the query may call: FILE.c, FILE.o, or a name of the library");
  app.add_flag("--no-branch-guards", arguments.no_branch_guards,
               "mask the addresses of extensions, also where a comparison is faster");
  app.add_option("--fuel", arguments.fuel,
                 "instructions that a hit may spend in extensions, 100000 otherwise")
      ->check(whole_number(extension::kFuelMin, extension::kFuelMax));
  app.add_flag(
      "--allow-missing", arguments.allow_missing,
      "go on when a source matches nothing; of a machine.Function that no process has yet, "
      "wait for the first one");
  app.add_flag("-y,--yes", arguments.yes,
               "trace more than 10000 sites, and where memory may run out");
  app.add_flag("-f,--follow", arguments.follow, "count forked children, too, and what they run");
  app.add_flag("--allow-late-uprobe-danger", arguments.allow_late_uprobe_danger,
               "also put jumps where a uprobe set later would end the process");
  auto* const uprobes = app.add_flag("--uprobes", arguments.uprobes,
                                     "a uprobe of the kernel wherever a site can take no jump");
  app.add_option("--plan", arguments.plan,
                 "how joins by cause are answered: emit (from events; the default), or in-place "
                 "(in the probes, within each process)")
      ->check(CLI::IsMember({"emit", "in-place"}).description(""));
  app.add_flag("--copies", arguments.copies,
               "run functions on copies where many are asked for: faster, but alone");
  app.add_flag("--no-uprobes", arguments.no_uprobes, "refuse sites that can take no jump")
      ->excludes(uprobes);
}

std::vector<std::string> default_vocabularies() {
  std::vector<std::string> paths{vocabulary_folder()};
  if (const std::string own = own_folder("vocabulary"); !own.empty()) paths.push_back(own);
  std::erase_if(paths, [](const std::string& path) {
    std::error_code problem;
    return !std::filesystem::exists(path, problem);
  });
  return paths;
}

Expected<std::vector<std::string>> split_command(const std::string& command) {
  return Words(command).all();
}

Expected<engine::Request> request_of(const RequestArguments& arguments) {
  engine::Request request;
  request.text = CLEW_TRY(read_text(arguments.query));
  request.processes = arguments.processes;
  if (!arguments.command.empty()) {
    request.command = CLEW_TRY(split_command(arguments.command));
    if (request.command.empty()) {
      return fail(ErrorCode::InvalidQuery, "the command of -c is empty");
    }
  }
  request.vocabulary_paths = default_vocabularies();
  request.vocabulary_paths.insert(request.vocabulary_paths.end(), arguments.vocabularies.begin(),
                                  arguments.vocabularies.end());
  request.extensions = arguments.extensions;
  request.extension_folder = extension_folder();
  request.branch_guards = !arguments.no_branch_guards;
  request.extension_fuel = arguments.fuel;
  request.allow_missing = arguments.allow_missing;
  request.is_sure = arguments.yes;
  request.follow_forks = arguments.follow;
  if (arguments.allow_late_uprobe_danger) {
    request.late_uprobe_danger = code::LateUprobeDanger::Allowed;
  }
  request.copies = arguments.copies;
  request.in_place = arguments.plan == "in-place";
  if (arguments.uprobes) request.uprobes = engine::UprobePolicy::WhereRefused;
  if (arguments.no_uprobes) request.uprobes = engine::UprobePolicy::Never;
  return request;
}

}  // namespace clew::cmd
