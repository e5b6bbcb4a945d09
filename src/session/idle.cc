// SPDX-License-Identifier: Apache-2.0
#include "session/idle.h"

#include <fmt/format.h>

namespace clew::session {

bool Idle::wants_look(Time::time_point now) {
  if (now - looked_ < limit_.time / 4) return false;
  looked_ = now;
  return true;
}

std::optional<std::string> Idle::why_over(Time::time_point now) const {
  const double seconds = std::chrono::duration<double>(limit_.time).count();
  if (limit_.is_unread && limit_.is_unread())
    return fmt::format("nobody has read the answer for {:g} s: the session ends (--idle)", seconds);
  if (!is_quiet(now)) return std::nullopt;
  return fmt::format("nothing was answered for {:g} s: the session ends (--idle)", seconds);
}

}  // namespace clew::session
