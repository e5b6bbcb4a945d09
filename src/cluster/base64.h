// SPDX-License-Identifier: Apache-2.0
// Bytes out of base64 (RFC 4648, section 4), as JSON carries them.
#pragma once

#include <optional>
#include <string_view>

#include "cluster/bus.h"

namespace clew::cluster {

// Nothing: it is not in that form.
std::optional<Bytes> from_base64(std::string_view text);

}  // namespace clew::cluster
