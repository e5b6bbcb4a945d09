// SPDX-License-Identifier: Apache-2.0
// Names that were probably meant where an unknown one stands.
#pragma once

#include <span>

#include "query/d/check_context.h"

namespace clew::query::d::checking {

std::string nearest_variable(const Context& context, std::string_view name);
// `others`: functions besides D's own.
std::string nearest_function(std::string_view name, std::span<const std::string> others = {});
std::string nearest_member(const TypeTable& types, TypeId record, std::string_view name);

}  // namespace clew::query::d::checking
