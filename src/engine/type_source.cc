// SPDX-License-Identifier: Apache-2.0
#include "engine/type_source.h"

#include <algorithm>

#include <fmt/format.h>

namespace clew::engine {
namespace {

constexpr unsigned kModuleShift = 32;

query::TypeHandle handle_of(size_t module, target::TypeId type) {
  // Module numbers start at 1 in handles, so that 0 stays "not known".
  return type == target::kVoidType ? 0 : (module + 1) << kModuleShift | type;
}

size_t module_of(query::TypeHandle handle) {
  return (handle >> kModuleShift) - 1;
}

target::TypeId type_of(query::TypeHandle handle) {
  return handle & UINT32_MAX;
}

constexpr uint16_t kRegisterArguments = 6;

query::Parameter parameter_of(size_t module, const target::Parameter& parameter) {
  query::Parameter result;
  result.name = parameter.name;
  result.type = handle_of(module, parameter.type);
  switch (parameter.place) {
    case target::ArgumentPlace::IntegerRegister:
      result.index = parameter.index;
      break;
    case target::ArgumentPlace::Stack:
      result.index = static_cast<uint16_t>(kRegisterArguments + parameter.index);
      if (result.index >= query::kArgumentsMax) result.refusal = "too far up the stack";
      break;
    case target::ArgumentPlace::VectorRegister:
      result.index = static_cast<uint16_t>(query::kVectorArgument + parameter.index);
      break;
    case target::ArgumentPlace::IntegerPair:
      result.index = parameter.index;
      result.is_pair = true;
      break;
    case target::ArgumentPlace::Unavailable:
      result.refusal = parameter.problem;
      break;
  }
  return result;
}

bool agree(const query::Parameter& a, const query::Parameter& b) {
  return a.name == b.name && a.index == b.index && a.refusal == b.refusal;
}

}  // namespace

std::string pattern_of(const query::Source& source) {
  return source.module.empty() ? source.function : source.module + "!" + source.function;
}

Expected<std::vector<CatalogTypes::Described>> CatalogTypes::signatures(
    const query::Source& source) {
  const std::string pattern = pattern_of(source);
  const std::vector<target::FunctionMatch> matches = CLEW_TRY(catalog_.find(pattern));
  if (matches.empty()) return tl::unexpected(catalog_.explain_no_match(pattern));
  std::vector<Described> found;
  Error problem{ErrorCode::NotFound, "there is no type information"};
  for (const target::FunctionMatch& match : matches) {
    if (found.size() == kFunctionsMax) break;
    Expected<target::DebugInfo*> debug = catalog_.debug_info(match.module);
    if (!debug) {
      problem = debug.error();
      continue;
    }
    const target::ModuleImage* image = CLEW_TRY(catalog_.image(match.module));
    Expected<target::Signature> signature =
        (*debug)->signature(image->functions()[match.function].address);
    if (signature) {
      found.push_back({.module = match.module, .signature = std::move(*signature)});
    } else {
      problem = signature.error();
    }
  }
  if (found.empty()) return tl::unexpected(problem);
  return found;
}

Expected<std::vector<query::Parameter>> CatalogTypes::parameters(const query::Source& source) {
  const std::vector<Described> all = CLEW_TRY(signatures(source));
  std::vector<query::Parameter> common;
  for (const target::Parameter& parameter : all[0].signature.parameters) {
    common.push_back(parameter_of(all[0].module, parameter));
  }
  for (const Described& other : all) {
    const auto& theirs = other.signature.parameters;
    std::erase_if(common, [&](const query::Parameter& mine) {
      const auto same = [&](const target::Parameter& parameter) {
        return agree(mine, parameter_of(other.module, parameter));
      };
      return std::none_of(theirs.begin(), theirs.end(), same);
    });
  }
  return common;
}

Expected<query::TypeHandle> CatalogTypes::return_type(const query::Source& source) {
  const std::vector<Described> all = CLEW_TRY(signatures(source));
  const query::TypeHandle first = handle_of(all[0].module, all[0].signature.return_type);
  const std::string name = describe(first).name;
  for (const Described& other : all) {
    if (describe(handle_of(other.module, other.signature.return_type)).name != name) {
      return fail(ErrorCode::NotFound, "the matching functions return different types");
    }
  }
  return first;
}

query::TypeHandle CatalogTypes::find_type(std::string_view name) {
  for (size_t module = 0; module < catalog_.modules().size(); ++module) {
    Expected<target::DebugInfo*> debug = catalog_.debug_info(module);
    if (!debug) continue;
    const target::TypeId type = (*debug)->find_type(name);
    if (type != target::kVoidType) return handle_of(module, type);
  }
  return 0;
}

target::DebugInfo* CatalogTypes::debug_of(query::TypeHandle type) {
  if (type == 0) return nullptr;
  const Expected<target::DebugInfo*> debug = catalog_.debug_info(module_of(type));
  return debug ? *debug : nullptr;
}

query::CType CatalogTypes::describe(query::TypeHandle type) {
  target::DebugInfo* const debug = debug_of(type);
  if (debug == nullptr) return {};
  query::CType result = debug->describe(type_of(type));
  result.target = handle_of(module_of(type), result.target);
  return result;
}

std::vector<query::CMember> CatalogTypes::members(query::TypeHandle type) {
  target::DebugInfo* const debug = debug_of(type);
  if (debug == nullptr) return {};
  std::vector<query::CMember> result = debug->members(type_of(type));
  for (query::CMember& member : result)
    member.type = handle_of(module_of(type), member.type);
  return result;
}

std::vector<query::Enumerator> CatalogTypes::enumerators(query::TypeHandle type) {
  target::DebugInfo* const debug = debug_of(type);
  return debug == nullptr ? std::vector<query::Enumerator>() : debug->enumerators(type_of(type));
}

}  // namespace clew::engine
