// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/provider_files.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/run_program.h"
#include "engine/dtrace/provider_text.h"
#include "engine/dtrace/providers.h"
#include "engine/dtrace/script_types.h"

namespace clew::engine {
namespace {

using Product = DtraceRequest::Product;

// "lib/probes.d" -> "probes.h"
Expected<std::string> default_path(const DtraceRequest& request) {
  const bool is_header = request.product == Product::Header;
  const std::string_view flag = is_header ? "-h" : "-G";
  if (request.programs.size() > 1) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{} requires an output file if multiple scripts are specified", flag));
  }
  const DtraceProgram& program = request.programs[0];
  if (!program.is_file || !program.text.ends_with(".d")) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{} requires an output file if no scripts are specified", flag));
  }
  const std::string name = program.text.substr(program.text.rfind('/') + 1);
  return name.substr(0, name.size() - 1) + (is_header ? "h" : "o");
}

Expected<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  if (file) file << text << std::flush;
  if (file) return {};
  return fail(ErrorCode::Io,
              fmt::format("failed to open header file '{}': {}", path, error_text(errno)));
}

// What the objects call of the providers' functions, one a line.
Expected<std::string> called_by(const std::vector<std::string>& objects) {
  if (objects.empty()) return "";
  std::vector<std::string> words = {"nm", "-u", "-P", "--"};
  for (const std::string& object : objects) {
    if (access(object.c_str(), R_OK) != 0) {
      return fail(ErrorCode::NotFound, fmt::format("failed to link script: failed to open {}: {}",
                                                   object, error_text(errno)));
    }
    words.push_back(object);
  }
  const FinishedProgram run = CLEW_TRY(run_program(std::move(words), ""));
  if (!run.succeeded) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("failed to link script: nm: {}", run.messages));
  }
  std::set<std::string> names;
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find(' '));
    if (name.starts_with("__dtrace_") || name.starts_with("__dtraceenabled_")) names.insert(name);
  }
  std::string text;
  for (const std::string& name : names)
    text += name + "\n";
  return text;
}

Expected<void> write_object(const DtraceRequest& request, Providers& providers,
                            const std::string& path) {
  const std::string called = CLEW_TRY(called_by(request.arguments));
  auto assembly = provider_assembly(providers.definitions, providers.types, called);
  if (!assembly) {
    return fail(assembly.error().code,
                fmt::format("failed to link script: {}", assembly.error().message));
  }
  const FinishedProgram run = CLEW_TRY(run_program({"as", "--64", "-o", path, "-"}, *assembly));
  if (run.succeeded) return {};
  return fail(ErrorCode::Io, fmt::format("failed to link script: as: {}", run.messages));
}

}  // namespace

Expected<int> write_provider_files(const DtraceRequest& request) {
  const std::string path =
      request.output_path.empty() ? CLEW_TRY(default_path(request)) : request.output_path;
  // An object's command line has objects where a script's has its arguments.
  DtraceRequest read = request;
  if (request.product == Product::Object) read.arguments.clear();
  kernel::Catalogue catalogue;
  ScriptTypes types;
  Providers providers = CLEW_TRY(read_providers(read, catalogue, &types));
  if (request.product == Product::Object) {
    CLEW_TRY(write_object(request, providers, path));
  } else {
    CLEW_TRY(write_file(path, provider_header(providers.definitions, providers.types, path)));
  }
  return 0;
}

}  // namespace clew::engine
