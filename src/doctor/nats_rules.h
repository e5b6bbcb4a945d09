// SPDX-License-Identifier: Apache-2.0
// What of a server's configuration (nats_settings.h) lets somebody do what a cluster of Clew must
// not allow: who is let in, who may say and hear what, who can read on the way.
//
// The file is looked at, and not the server: of a server that runs, its monitoring listener tells
// no lists of permissions but those of users who are connected, and is itself a thing to be shut.
#pragma once

#include "doctor/findings.h"
#include "doctor/nats_settings.h"

namespace clew::doctor {

void check_nats_settings(const Settings& settings, Findings& findings);

}  // namespace clew::doctor
