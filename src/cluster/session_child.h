// SPDX-License-Identifier: Apache-2.0
// A session that a node runs, from inside: a process of its own, so that whatever befalls one
// session befalls no other and not the node, and so that the probes of a node that is killed are
// taken out. It says what it counts over a socket (session_frame.h), pane by pane.
#pragma once

#include "base/error.h"
#include "engine/run.h"

namespace clew::cluster {

// Reads what is wanted from the socket and answers it until the other side is closed, or goes.
// `request` has what all sessions of this machine have: vocabularies and extensions. Errors: nobody
// hears what is said any more; all else is told.
Expected<void> serve_session(int socket, engine::Request request);

}  // namespace clew::cluster
