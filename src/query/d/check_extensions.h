// SPDX-License-Identifier: Apache-2.0
// Calls of functions of extensions: names that nobody else knows.
#pragma once

#include "query/d/check_context.h"

namespace clew::query::d::checking {

// The function with this name, or null.
const ExtensionFunction* find_extension_function(Context& context, std::string_view name);

std::vector<std::string> names_of_extensions(const Context& context);

// Errors: D_EXT_FUNC for a function that cannot be called; those of check_arguments(). An integer
// is an address where an address is wanted, as C's programs pass them around; a string is none.
Compiled<void> check_extension_call(Context& context, Node& node,
                                    const ExtensionFunction& function);

}  // namespace clew::query::d::checking
