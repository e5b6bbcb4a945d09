// SPDX-License-Identifier: Apache-2.0
#include "target/c_base_types.h"

#include <algorithm>

namespace clew::target {

namespace {

constexpr std::array<std::string_view, 7> kTypeWords = {"long", "short",    "unsigned", "signed",
                                                        "char", "__int128", "int"};

}  // namespace

std::string c_base_name(std::string_view name) {
  std::array<unsigned, kTypeWords.size()> counts{};
  for (std::string_view rest = name; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    const auto known = std::find(kTypeWords.begin(), kTypeWords.end(), word);
    if (known == kTypeWords.end()) return std::string(name);
    ++counts[static_cast<size_t>(known - kTypeWords.begin())];
    rest.remove_prefix(std::min(rest.find_first_not_of(' ', word.size()), rest.size()));
  }
  const auto [longs, shorts, unsigneds, signeds, chars, wides, ints] = counts;
  if (name.empty() || longs > 2) return std::string(name);
  const std::string sign = unsigneds != 0 ? "unsigned " : "";
  if (chars != 0) return (signeds != 0 ? "signed " : sign) + "char";
  if (wides != 0) return sign + "__int128";
  if (shorts != 0) return sign + "short";
  if (longs != 0) return sign + (longs == 2 ? "long long" : "long");
  return sign + "int";
}

}  // namespace clew::target
