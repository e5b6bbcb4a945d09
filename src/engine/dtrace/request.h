// SPDX-License-Identifier: Apache-2.0
// What `clew dtrace` was asked to do: its command line as one value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "extension/extension.h"
#include "query/d/source.h"

namespace clew::engine {

struct DtraceProgram {
  using Form = query::d::CompileOptions::Form;
  Form form = Form::Name;
  bool is_file = false;  // -s: `text` is a path.
  std::string text;
  std::optional<std::string> content = std::nullopt;  // Of the file `text`, which is not read then.
};

struct DtraceRequest {
  std::vector<DtraceProgram> programs;                       // In the order of the command line.
  std::vector<std::string> arguments;                        // $1, $2, …
  std::vector<std::pair<std::string, std::string>> options;  // -x and the flags that mean options.
  std::vector<std::string> commands;                         // -c
  std::vector<pid_t> pids;                                   // -p
  std::vector<std::string> extensions;                       // --ext: extension::load()
  std::string extension_folder;                              // Of those that come with Clew.
  uint64_t extension_fuel = extension::kFuel;                // --fuel
  std::optional<double> max_overhead;                        // Request::max_overhead
  std::optional<uint64_t> idle_ns;                           // Request::idle_ns
  std::string output_path;                                   // -o
  bool truncates = false;                                    // What -o has from before is gone.
  bool preprocess = false;                                   // -C
  std::vector<std::string> preprocessor_arguments;           // -D -I -U -H
  // -h: a header for the builder of a program; -G: an object for it, `arguments` are its objects.
  enum class Product : uint8_t { Trace, Header, Object } product = Product::Trace;
  bool is_list = false;              // -l
  bool is_verbose = false;           // -v
  bool compile_only = false;         // -e
  bool forbids_destructive = false;  // --no-destructive, whatever the programs say.
  bool disassemble = false;          // -S
};

// Runs it to its end, or until `stop_descriptor` is readable. The exit status: 0, that of exit(n),
// or 1 when the programs cannot be compiled or enabled; messages are on standard error.
int run_dtrace(const DtraceRequest& request, int stop_descriptor);

}  // namespace clew::engine
