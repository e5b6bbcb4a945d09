// SPDX-License-Identifier: Apache-2.0
// BTF types in the words of C.
#include <algorithm>
#include <array>

#include "target/btf.h"

namespace clew::target {

namespace {

constexpr uint32_t kDepthMax = 32;

struct IntegerName {
  std::string_view dwarf;
  std::string_view c;
};

constexpr std::array kIntegerNames = {
    IntegerName{"long unsigned int", "unsigned long"},
    IntegerName{"long int", "long"},
    IntegerName{"short unsigned int", "unsigned short"},
    IntegerName{"short int", "short"},
    IntegerName{"long long unsigned int", "unsigned long long"},
    IntegerName{"long long int", "long long"},
    IntegerName{"__int128 unsigned", "unsigned __int128"},
};

std::string text_at(const Btf& btf, BtfId type, uint32_t depth) {
  if (depth > kDepthMax) return "void";
  const BtfType description = btf.at(type);
  const bool is_nameless = description.name.empty();
  switch (description.kind) {
    case BtfKind::Qualifier:
      return text_at(btf, description.target, depth + 1);
    case BtfKind::Integer:
    case BtfKind::Float:
      return std::string(c_integer_name(description.name));
    case BtfKind::Typedef:
      return std::string(description.name);
    case BtfKind::Struct:
      return is_nameless ? "void" : "struct " + std::string(description.name);
    case BtfKind::Union:
      return is_nameless ? "void" : "union " + std::string(description.name);
    case BtfKind::Enum:
      return is_nameless ? "int" : "enum " + std::string(description.name);
    case BtfKind::Forward:
      return (description.is_union ? "union " : "struct ") + std::string(description.name);
    case BtfKind::Array:
    case BtfKind::Pointer: {
      std::string target = text_at(btf, description.target, depth + 1);
      return target + (target.ends_with('*') ? "*" : " *");
    }
    case BtfKind::Void:
    case BtfKind::Function:
    case BtfKind::Prototype:
    case BtfKind::Variable:
    case BtfKind::Other:
      return "void";
  }
  return "void";
}

}  // namespace

std::string c_type_text(const Btf& btf, BtfId type) {
  return text_at(btf, type, 0);
}

std::string_view c_integer_name(std::string_view name) {
  const auto found = std::find_if(kIntegerNames.begin(), kIntegerNames.end(),
                                  [name](const IntegerName& each) { return each.dwarf == name; });
  return found == kIntegerNames.end() ? name : found->c;
}

}  // namespace clew::target
