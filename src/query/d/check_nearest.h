// SPDX-License-Identifier: Apache-2.0
// Names that were probably meant where an unknown one stands.
#pragma once

#include "query/d/check_context.h"

namespace clew::query::d::checking {

std::string nearest_variable(const Context& context, std::string_view name);
std::string nearest_function(std::string_view name);
std::string nearest_member(const TypeTable& types, TypeId record, std::string_view name);

}  // namespace clew::query::d::checking
