// SPDX-License-Identifier: Apache-2.0
// What the verbs share at the terminal: lines on standard error, a progress line that erases
// itself, and signals as a readable descriptor.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "engine/run.h"

namespace clew::cmd {

class Console final : public engine::Notices {
 public:
  explicit Console(bool quiet);
  ~Console() override;

  void progress(std::string_view text) override;
  void warning(std::string_view text) override;
  void armed(std::string_view text) override { tell(text); }
  void made(std::string_view text) override { tell(text); }

 private:
  void erase();
  void tell(std::string_view text);

  bool quiet_;
  bool is_terminal_;
  bool line_shown_ = false;
};

// "clew: error: …" for an error of ours, the text as it is for a diagnostic with its place. Returns
// kExitError.
int report(const Error& error);

// What becomes of a session when a reader of its answer goes away (SIGPIPE).
enum class ReaderGone : uint8_t { Ends, GoesOn };

// Blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE and makes them readable: the session ends with its
// answer. A second SIGINT ends Clew at once.
Expected<FileDescriptor> signals_as_descriptor(ReaderGone reader_gone);

}  // namespace clew::cmd
