// SPDX-License-Identifier: Apache-2.0
// The process of `clew ui` that browsers speak to. It has no rights: what it wants done it asks the
// keeper for, which gives it nothing but what a token is for.
#pragma once

#include "base/error.h"
#include "base/file_descriptor.h"
#include "serve/channel.h"
#include "serve/http_server.h"

namespace clew::serve {

// Gives up what rights this process has, for good, and cannot be traced or dumped any more.
// Errors: the system does not let it.
Expected<void> give_up_rights();

struct FrontParts {
  Channel channel;
  FileDescriptor listener;
  Page page;
  std::string token;
  ServerFacts facts;
};
// Serves until the keeper is gone. Errors: what the keeper says is no sense.
Expected<void> serve_browsers(FrontParts parts);

}  // namespace clew::serve
