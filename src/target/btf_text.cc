// SPDX-License-Identifier: Apache-2.0
// BTF types in the words of C.
#include "target/btf.h"
#include "target/c_base_types.h"

namespace clew::target {

namespace {

constexpr uint32_t kTextDepthMax = 32;

std::string text_at(const Btf& btf, BtfId type, uint32_t depth) {
  if (depth > kTextDepthMax) return "void";
  const BtfType description = btf.at(type);
  const bool is_nameless = description.name.empty();
  switch (description.kind) {
    case BtfKind::Qualifier:
      return text_at(btf, description.target, depth + 1);
    case BtfKind::Integer:
    case BtfKind::Float:
      return c_base_name(description.name);
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

}  // namespace clew::target
