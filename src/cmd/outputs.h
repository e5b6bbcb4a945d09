// SPDX-License-Identifier: Apache-2.0
// Where the answer of a session goes: standard output, or the files of -o, each in a format of its
// own. A file that is there stays as it is until the answer begins.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cmd/metric_places.h"
#include "output/fan_out.h"
#include "output/sinks.h"

namespace clew::cmd {

inline constexpr std::string_view kStandardOutput = "-";

struct OutputArguments {
  std::vector<std::string> files;  // kStandardOutput is one; none: that one.
  std::string format;              // A name of the registry; empty: what the files say.
  output::About about{};
  std::optional<std::chrono::nanoseconds> patience{};  // With readers that take nothing.
  MetricArguments metrics{};                           // Of verbs that have these.
  std::string query_name{};                            // For them.
};

// --format NAME, an option for each format but the usual one, and -o.
void declare_outputs(CLI::App& app, OutputArguments& arguments);

// Of one file among those of `arguments`. What --format says goes before the extension of a single
// file; of several it says those whose extension says nothing.
const output::FormatRow& format_of(const OutputArguments& arguments, const std::string& file);

class Outputs {
 public:
  Outputs();
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  ~Outputs();

  // Opens all files, before anything else. Errors: one cannot be written, or is there twice.
  Expected<void> open(const OutputArguments& arguments);
  // The answer will have these columns. Errors: a format cannot write such an answer.
  Expected<void> accept(output::Columns columns) const;
  // Takes the answer: once it has begun, the files hold it and nothing else. What cannot be written
  // to one place goes to the others all the same.
  [[nodiscard]] output::RowSink& sink();
  // No reader has taken anything for as long as the patience with it lasts: what comes is lost.
  // Files by their names are always read.
  [[nodiscard]] bool is_unread();
  [[nodiscard]] size_t size() const { return all_.size() + metrics_.sinks().size(); }
  // Once, after the session, which may have ended with `error`: what could not be written, an error
  // for each place.
  [[nodiscard]] std::vector<Error> close(const Error* error);

 private:
  class Notes;
  class One;
  class Beginning;
  std::unique_ptr<Notes> notes_;
  std::vector<std::unique_ptr<One>> all_;
  MetricPlaces metrics_;
  std::unique_ptr<Beginning> sink_;
  bool is_known_unread_ = false;  // As it was asked last.
};

}  // namespace clew::cmd
