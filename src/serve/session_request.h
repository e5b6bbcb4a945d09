// SPDX-License-Identifier: Apache-2.0
// What a page says of a session that it wants, and of a text that it asks about: a JSON object with
// text, language, targets and options. Nothing but what is understood is passed on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "output/json_value.h"

namespace clew::serve {

struct SessionRequest {
  std::string language;                 // The task of a session: query or d.
  std::vector<std::string> words;       // Of the task, see task.h.
  std::shared_ptr<output::Json> asked;  // As it was understood, to be shown.
  bool has_command = false;
  size_t at = 0;  // Where the cursor is, of `complete`.
};

// Errors: it is no such object; the message says what is wrong.
Expected<SessionRequest> session_request(std::string_view body);

}  // namespace clew::serve
