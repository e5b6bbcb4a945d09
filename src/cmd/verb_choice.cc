// SPDX-License-Identifier: Apache-2.0
#include "cmd/verb_choice.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"
#include "target/process.h"

namespace clew::cmd {
namespace {

bool has_any(const std::vector<pid_t>& pids, const std::vector<pid_t>& others) {
  return std::any_of(pids.begin(), pids.end(), [&others](pid_t pid) {
    return std::find(others.begin(), others.end(), pid) != others.end();
  });
}

std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(", "), list.size());
    if (end > 0) names.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

bool has_name(std::string_view list, std::string_view name) {
  const std::vector<std::string_view> names = names_in(list);
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Processes that run such a program.
Expected<std::vector<pid_t>> running(const std::string& pattern) {
  std::vector<pid_t> pids;
  for (const target::Process& process : CLEW_TRY(target::find_processes(pattern)))
    pids.push_back(process.pid());
  return pids;
}

class VerbChooser {
 public:
  VerbChooser(const NamedVerb& verb, const VerbWish& wish) : verb_(verb), wish_(wish) {}

  Expected<const VerbText*> run() {
    if (!wish_.variant.empty()) return named();
    if (wish_.processes->names_some()) {
      pids_ = CLEW_TRY(engine::find_chosen(*wish_.processes));
    }
    for (const VerbText& text : verb_.texts) {
      if (CLEW_TRY(holds(text))) return &text;
    }
    const bool says_who = wish_.processes->names_some() || !wish_.program.empty();
    if (!says_who) return found_by_program();
    return fail(ErrorCode::NotFound, verb_.otherwise);
  }

 private:
  Expected<const VerbText*> named() const {
    std::vector<std::string_view> names;
    for (const VerbText& text : verb_.texts) {
      if (text.variant == wish_.variant) return &text;
      if (!text.variant.empty()) names.emplace_back(text.variant);
    }
    const std::string near = nearest_name(wish_.variant, names);
    return fail(ErrorCode::NotFound,
                fmt::format("clew {} has no variant '{}'; {}", verb_.name, wish_.variant,
                            near.empty() ? fmt::format("there are: {}", fmt::join(names, ", "))
                                         : fmt::format("did you mean '{}'?", near)));
  }

  Expected<bool> holds(const VerbText& text) const {
    switch (text.when.kind) {
      case VerbCondition::Kind::None:
        return text.variant.empty() && verb_.otherwise.empty();
      case VerbCondition::Kind::Program:
        if (!wish_.program.empty()) return matches_pattern(text.when.words, wish_.program);
        return !pids_.empty() && has_any(pids_, CLEW_TRY(running(text.when.words)));
      case VerbCondition::Kind::Library:
        return !pids_.empty() &&
               has_any(pids_, CLEW_TRY(target::find_processes_with(text.when.words)));
      case VerbCondition::Kind::Format:
        return has_name(text.when.words, wish_.format);
      case VerbCondition::Kind::Given:
        return std::any_of(verb_.parameters.begin(), verb_.parameters.end(),
                           [&text](const VerbParameter& parameter) {
                             return parameter.is_given && has_name(text.when.words, parameter.name);
                           });
      case VerbCondition::Kind::Several:
        return pids_.size() > 1;
    }
    return false;
  }

  // Nobody said which processes, and there is only one kind of those that the verb is for.
  Expected<const VerbText*> found_by_program() {
    std::vector<const VerbText*> found;
    std::vector<std::string> words;
    for (const VerbText& text : verb_.texts) {
      if (text.when.kind != VerbCondition::Kind::Program) continue;
      const std::vector<pid_t> pids = CLEW_TRY(running(text.when.words));
      if (pids.empty()) continue;
      found.push_back(&text);
      words.push_back(fmt::format("{} (process {})", text.variant, pids.front()));
    }
    if (found.empty()) return fail(ErrorCode::NotFound, verb_.otherwise);
    if (found.size() > 1) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("clew {} is for one of these at a time: {}; say which with -p PID, "
                              "-n NAME or --as {}",
                              verb_.name, fmt::join(words, ", "), found[0]->variant));
    }
    wish_.processes->name_patterns.push_back(found[0]->when.words);
    return found[0];
  }

  const NamedVerb& verb_;
  const VerbWish& wish_;
  std::vector<pid_t> pids_;
};

}  // namespace

Expected<const VerbText*> choose_text(const NamedVerb& verb, const VerbWish& wish) {
  return VerbChooser(verb, wish).run();
}

}  // namespace clew::cmd
