// SPDX-License-Identifier: Apache-2.0
#include "serve/task.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace clew::serve {
namespace {

// What becomes of a word of a task.
enum class Use : uint8_t {
  Option,   // --name=value
  Flag,     // --name
  Program,  // One more word of the command that is started and traced.
  Text,     // The text of a query, which is no file's name.
  Plain,    // An argument that is no option.
  Script,   // The text of a script, on standard input.
};

struct WordRule {
  std::string_view name;
  Use use;
  std::string_view option{};  // As the verb calls it.
};

struct TaskRule {
  std::string_view name;
  std::span<const std::string_view> verb;
  std::span<const WordRule> words;
  bool is_session = false;
};

constexpr std::array<std::string_view, 3> kRun = {"run", "--format=stream", "--quiet"};
constexpr std::array kRunWords = {
    WordRule{"text", Use::Text},
    WordRule{"pid", Use::Option, "--pid"},
    WordRule{"name", Use::Option, "--name"},
    WordRule{"command", Use::Program, "--command"},
    WordRule{"for", Use::Option, "--for"},
    WordRule{"max-overhead", Use::Option, "--max-overhead"},
    WordRule{"follow", Use::Flag, "--follow"},
};

constexpr std::array<std::string_view, 4> kDtrace = {"dtrace", "--format=stream", "-s",
                                                     "/dev/stdin"};
constexpr std::array kDtraceWords = {
    WordRule{"text", Use::Script},
    WordRule{"pid", Use::Option, "-p"},
    WordRule{"command", Use::Program, "-c"},
    WordRule{"max-overhead", Use::Option, "--max-overhead"},
};

// What is asked without tracing.
constexpr std::array kTextWords = {
    WordRule{"text", Use::Text},
    WordRule{"pid", Use::Option, "--pid"},
    WordRule{"name", Use::Option, "--name"},
};
constexpr std::array kScriptWords = {
    WordRule{"text", Use::Script},
    WordRule{"pid", Use::Option, "-p"},
};
constexpr std::array kListWords = {
    WordRule{"pattern", Use::Plain},
    WordRule{"pid", Use::Option, "--pid"},
    WordRule{"name", Use::Option, "--name"},
};
constexpr std::array kPidWord = {WordRule{"pid", Use::Option, "--pid"}};
constexpr std::array kPlainWords = {WordRule{"word", Use::Plain}};
constexpr std::array<std::string_view, 2> kExplain = {"explain", "--json"};
constexpr std::array<std::string_view, 5> kCompile = {"dtrace", "-e", "-S", "-s", "/dev/stdin"};
constexpr std::array<std::string_view, 2> kList = {"list", "--json"};
constexpr std::array<std::string_view, 3> kProcesses = {"list", "--json", "--processes"};
constexpr std::array<std::string_view, 2> kDoctor = {"doctor", "--json"};
constexpr std::array<std::string_view, 2> kPs = {"ps", "--json"};
constexpr std::array<std::string_view, 2> kExamples = {"examples", "--json"};

constexpr std::array kTasks = {
    TaskRule{"query", kRun, kRunWords, true},        TaskRule{"d", kDtrace, kDtraceWords, true},
    TaskRule{"explain-query", kExplain, kTextWords}, TaskRule{"explain-d", kCompile, kScriptWords},
    TaskRule{"functions", kList, kListWords},        TaskRule{"processes", kProcesses, {}},
    TaskRule{"machine", kDoctor, kPidWord},          TaskRule{"traced", kPs, {}},
    TaskRule{"examples", kExamples, kPlainWords},
};

// As a shell reads it, and split_command() of the verbs.
std::string quoted(std::string_view word) {
  std::string result = "'";
  for (const char c : word)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// `--name=value`, or `-nvalue`: no value is taken for an option.
std::string option_word(std::string_view option, std::string_view value) {
  return fmt::format("{}{}{}", option, option.starts_with("--") ? "=" : "", value);
}

class CommandMaker {
 public:
  CommandMaker(const TaskRule& task, const TaskRules& rules) {
    command_.is_session = task.is_session;
    command_.words.assign(task.verb.begin(), task.verb.end());
    const bool is_script = task.name == "d" && !rules.commands_allowed;
    if (is_script) command_.words.emplace_back("--no-destructive");
  }

  void take(const WordRule& rule, std::string_view value) {
    switch (rule.use) {
      case Use::Option:
        command_.words.push_back(option_word(rule.option, value));
        return;
      case Use::Flag:
        command_.words.emplace_back(rule.option);
        return;
      case Use::Program:
        program_option_ = rule.option;
        program_ += (program_.empty() ? "" : " ") + quoted(value);
        return;
      case Use::Text:
        // A line's end is in no file's name that anybody wants to have read.
        plain_.push_back(std::string(value) + "\n");
        return;
      case Use::Plain:
        plain_.emplace_back(value);
        return;
      case Use::Script:
        command_.input = value;
        return;
    }
  }

  Command done() {
    if (!program_.empty()) command_.words.push_back(option_word(program_option_, program_));
    if (!plain_.empty()) command_.words.emplace_back("--");
    command_.words.insert(command_.words.end(), plain_.begin(), plain_.end());
    return std::move(command_);
  }

 private:
  Command command_;
  std::string_view program_option_;
  std::string program_;
  std::vector<std::string> plain_;  // Behind all options.
};

}  // namespace

Expected<Command> command_of(const std::vector<std::string>& fields, const TaskRules& rules) {
  const std::string_view name = fields.empty() ? std::string_view() : fields.front();
  const auto* const task = std::find_if(kTasks.begin(), kTasks.end(),
                                        [&](const TaskRule& one) { return one.name == name; });
  if (task == kTasks.end()) return fail(ErrorCode::Refused, "there is no such task");
  CommandMaker maker(*task, rules);
  for (const std::string& field : std::span(fields).subspan(1)) {
    const size_t equals = std::min(field.find('='), field.size());
    const std::string_view word = std::string_view(field).substr(0, equals);
    const std::string_view value =
        std::string_view(field).substr(std::min(equals + 1, field.size()));
    const auto rule = std::find_if(task->words.begin(), task->words.end(),
                                   [&](const WordRule& one) { return one.name == word; });
    if (rule == task->words.end())
      return fail(ErrorCode::Refused, fmt::format("{} has no '{}' here", name, word));
    if (value.find('\0') != std::string_view::npos)
      return fail(ErrorCode::Refused, fmt::format("'{}' has a byte that is 0", word));
    if (rule->use == Use::Program && !rules.commands_allowed)
      return fail(ErrorCode::Refused, "commands are started only with --allow-commands");
    maker.take(*rule, value);
  }
  return maker.done();
}

}  // namespace clew::serve
