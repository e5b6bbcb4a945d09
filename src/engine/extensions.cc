// SPDX-License-Identifier: Apache-2.0
#include "engine/extensions.h"

#include <algorithm>

#include <fmt/format.h>

namespace clew::engine {
namespace {

query::Type type_of(const extension::ValueType& type) {
  return {.kind = query::TypeKind::Integer,
          .size_bytes = type.size_bytes,
          .is_signed = type.is_signed,
          .unit = type.is_pointer ? query::Unit::Address : query::Unit::None};
}

query::ExtensionFunction signature_of(const extension::Function& function) {
  query::ExtensionFunction result{
      .name = function.name, .result = type_of(function.result), .parameters = {}, .refusal = {}};
  for (const extension::Parameter& parameter : function.parameters)
    result.parameters.push_back(type_of(parameter.type));
  result.refusal = function.refusal;
  return result;
}

}  // namespace

Expected<Extensions> Extensions::load(const std::vector<std::string>& named,
                                      extension::Library library, const CallingLanguage& language) {
  Extensions result(std::move(library), language);
  for (const std::string& one : named) {
    extension::Extension loaded = CLEW_TRY(extension::load(one, result.library_));
    CLEW_TRY(result.add(std::move(loaded)));
  }
  return result;
}

Expected<void> Extensions::add(extension::Extension extension) {
  for (const extension::Function& function : extension.functions) {
    if (language_.has_function(function.name)) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("{}: '{}' is a function of {}; give it another name", extension.name,
                              function.name, language_.name));
    }
    if (known(function.name) != nullptr) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("two extensions have a function '{}'", function.name));
    }
    functions_.push_back(signature_of(function));
  }
  all_.push_back(std::move(extension));
  return {};
}

const query::ExtensionFunction* Extensions::known(std::string_view name) const {
  const auto found = std::find_if(functions_.begin(), functions_.end(),
                                  [name](const auto& one) { return one.name == name; });
  return found == functions_.end() ? nullptr : &*found;
}

// What the user has under a name of the library's is meant.
void Extensions::add_library() {
  if (has_library_) return;
  has_library_ = true;
  for (const std::string& name : extension::names_in(library_)) {
    Expected<extension::Extension> one = extension::load(name, library_);
    if (!one) continue;
    std::erase_if(one->functions, [this](const extension::Function& function) {
      return known(function.name) != nullptr;
    });
    (void)add(std::move(*one));
  }
}

const query::ExtensionFunction* Extensions::find(std::string_view name) {
  if (const query::ExtensionFunction* function = known(name)) return function;
  add_library();
  return known(name);
}

std::vector<std::string> Extensions::names() {
  add_library();
  std::vector<std::string> result;
  result.reserve(functions_.size());
  for (const query::ExtensionFunction& function : functions_)
    result.push_back(function.name);
  return result;
}

}  // namespace clew::engine
