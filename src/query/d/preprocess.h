// SPDX-License-Identifier: Apache-2.0
// dtrace -C: the text goes through the C preprocessor before it is parsed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::query::d {

struct PreprocessOptions {
  std::string path = "/usr/bin/cpp";   // -xcpppath
  std::vector<std::string> arguments;  // -Dname=value, -Uname, -Ipath, -H, in order
};

struct Preprocessed {
  std::string text;
  std::string messages;  // What the preprocessor wrote to stderr: -H's list, warnings.
};

// The interpreter line (#!) is blanked. Errors: the preprocessor cannot be run (Io), or it found
// errors (InvalidQuery; its own words are in the message).
Expected<Preprocessed> preprocess(std::string_view text, const PreprocessOptions& options);

}  // namespace clew::query::d
