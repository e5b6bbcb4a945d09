// SPDX-License-Identifier: Apache-2.0
#include "engine/left_text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "target/catalog.h"

namespace clew::engine {

std::string places_of(pid_t pid, std::span<const inline_::TextChange> changes) {
  constexpr size_t kShownMax = 5;
  auto catalog = target::Catalog::of_process(pid, target::default_catalog_options());
  std::string text;
  for (const inline_::TextChange& change : changes.first(std::min(changes.size(), kShownMax))) {
    const auto place = catalog ? catalog->symbolise(change.address) : std::nullopt;
    const bool is_function = place && place->function;
    text += text.empty() ? "" : "; ";
    text += is_function ? fmt::format("{} ({})", place->text, inline_::describe(change))
                        : inline_::describe(change);
  }
  if (changes.size() > kShownMax) text += fmt::format("; {} more", changes.size() - kShownMax);
  return text;
}

namespace {

std::string describe_child(pid_t pid, const inline_::LeftChild& child) {
  const std::string text = fmt::format("process {}, which process {} forked, keeps probes: {}",
                                       child.pid, pid, child.reason);
  return child.left.empty() ? fmt::format("{}; see clew ps", text)
                            : fmt::format("{}: {}", text, places_of(child.pid, child.left));
}

}  // namespace

Expected<void> check_left(pid_t pid, const inline_::DetachReport& report) {
  std::vector<std::string> problems;
  if (!report.left.empty()) {
    problems.push_back(fmt::format("the text of process {} is not its files': {}", pid,
                                   places_of(pid, report.left)));
  }
  if (report.residue) {
    problems.push_back(
        fmt::format("process {} keeps a residue: {}; see clew ps", pid, report.residue_reason));
  }
  for (const inline_::LeftChild& child : report.children)
    problems.push_back(describe_child(pid, child));
  if (problems.empty()) return {};
  return fail(ErrorCode::Io, fmt::format("{}", fmt::join(problems, "; ")));
}

}  // namespace clew::engine
