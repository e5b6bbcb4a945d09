// SPDX-License-Identifier: Apache-2.0
#include "cmd/graph_files.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "cmd/console.h"

namespace clew::cmd {
namespace {

bool is_same_file(int descriptor, const std::string& other) {
  struct stat one {};
  struct stat another {};
  return fstat(descriptor, &one) == 0 && stat(other.c_str(), &another) == 0 &&
         S_ISREG(one.st_mode) && one.st_dev == another.st_dev && one.st_ino == another.st_ino;
}

Expected<void> write_whole(int descriptor, const std::string& file, std::string_view text) {
  struct stat status {};
  const bool is_regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  const auto failed = [&file](int error) {
    return fail(ErrorCode::Io,
                fmt::format("cannot write the graph to {}: {}", file, error_text(error)));
  };
  if (is_regular && ftruncate(descriptor, 0) != 0) return failed(errno);
  output::FileSink bytes(descriptor);
  bytes.write(text);
  bytes.flush();
  if (bytes.error() != 0) return failed(bytes.error());
  return {};
}

}  // namespace

Expected<void> GraphFiles::open(const std::vector<std::string>& files,
                                const std::vector<std::string>& others) {
  std::vector<std::string> taken = others;
  for (const std::string& file : files) {
    const output::GraphWriter writer = CLEW_TRY(output::graph_writer_of(file));
    FileDescriptor descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!descriptor.valid())
      return fail(ErrorCode::Io, fmt::format("cannot write {}: {}", file, error_text(errno)));
    for (const std::string& other : taken) {
      if (!is_same_file(descriptor.get(), other)) continue;
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("{} and {} are one file; --graph needs its own", other, file));
    }
    taken.push_back(file);
    all_.push_back({.file = file, .descriptor = std::move(descriptor), .writer = writer});
  }
  return {};
}

engine::GraphRequest GraphFiles::request(std::string_view choice, const output::About& about) {
  return {.choice = output::choice_named(choice).value_or(output::GraphChoice::Slowest),
          .take = [this, query = about.query, host = about.host](output::RequestGraph graph) {
            graph.query = query;
            if (graph.host.empty()) graph.host = host;
            graph_ = std::move(graph);
          }};
}

std::vector<Error> GraphFiles::write(bool is_quiet) {
  std::vector<Error> errors;
  if (!graph_) return errors;
  std::vector<std::string> written;
  for (const One& one : all_) {
    if (auto done = write_whole(one.descriptor.get(), one.file, one.writer(*graph_)); done) {
      written.push_back(one.file);
    } else {
      errors.push_back(std::move(done).error());
    }
  }
  Console console(is_quiet);
  if (!written.empty()) {
    console.made(
        fmt::format("graph in {}: {}", fmt::join(written, ", "), output::describe(*graph_)));
  }
  for (const std::string& missing : output::left_out(*graph_))
    console.made("graph: " + missing);
  return errors;
}

}  // namespace clew::cmd
