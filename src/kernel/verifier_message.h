// SPDX-License-Identifier: Apache-2.0
// What the kernel's verifier says, cut down to one line for an error message.
#pragma once

#include <string>
#include <string_view>

namespace clew::kernel {

// The reason, with the function that it was found in if the log names one; empty when the log has
// none.
std::string verifier_message(std::string_view log);

}  // namespace clew::kernel
