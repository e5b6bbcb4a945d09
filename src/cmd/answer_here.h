// SPDX-License-Identifier: Apache-2.0
// A query is answered on this machine: what the verbs that run one have in common.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "cmd/outputs.h"
#include "engine/run.h"

namespace clew::cmd {

// What a format that stands by itself says of a session. `command`: of -c, as it was written.
output::About about(const engine::Request& request, const std::string& command);

struct AnswerOptions {
  bool is_quiet = false;
  // What is said on standard error behind an answer that has no row; empty: nothing is.
  std::string nothing{};
  // The column whose texts are names of types as the ABI of C++ writes them (N4shop7RefusedE), and
  // are shown as programs do (type_name.h); empty: there is none.
  std::string demangled{};
};

// To the query's end, or until a signal. Where there are several places, those that are left get
// the rest when a reader of one goes.
Expected<void> answer_here(const engine::Request& request, const AnswerOptions& options,
                           Outputs& outputs);

}  // namespace clew::cmd
