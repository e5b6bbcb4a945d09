// SPDX-License-Identifier: Apache-2.0
// The signal that ends a session, and the commands that the session has started: one that was sent
// to us alone is theirs, too. A terminal's Ctrl-C reaches them by itself.
#pragma once

#include <span>

#include <sys/types.h>

namespace clew::engine {

// Whether one waits there.
bool has_stop_signal(int stop_descriptor);
// Takes the signals that wait in this signalfd; sends one that a process has sent on to these, and
// is true then.
bool pass_on_signal(int stop_descriptor, std::span<const pid_t> commands);

}  // namespace clew::engine
