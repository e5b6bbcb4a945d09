// SPDX-License-Identifier: Apache-2.0
#include "cmd/outputs.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error_text.h"
#include "base/file_descriptor.h"

namespace clew::cmd {
namespace {

const output::FormatRow* format_named(std::string_view name) {
  const auto rows = output::formats();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

Expected<FileDescriptor> open_file(const std::string& file) {
  if (file == kStandardOutput) return FileDescriptor(dup(STDOUT_FILENO));
  FileDescriptor descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (descriptor.valid()) return descriptor;
  return fail(ErrorCode::Io, fmt::format("cannot write {}: {}", file, error_text(errno)));
}

bool is_regular(int fd, struct stat& status) {
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

const output::FormatRow& format_of(const OutputArguments& arguments, const std::string& file) {
  const output::FormatRow* const named = format_named(arguments.format);
  const output::FormatRow* const by_file = output::format_of_file(file);
  if (named != nullptr && (arguments.files.size() <= 1 || by_file == nullptr)) return *named;
  return by_file == nullptr ? output::formats().front() : *by_file;
}

// One place, its format, and the sink that writes it.
class Outputs::One {
 public:
  One(std::string file, FileDescriptor descriptor, const output::FormatRow& format,
      const output::About& about)
      : file_(std::move(file)),
        descriptor_(std::move(descriptor)),
        bytes_(descriptor_.get()),
        notes_(STDERR_FILENO) {
    const bool is_terminal = isatty(descriptor_.get()) == 1;
    sink_ = output::make_sink({.format = format.format,
                               .redraw = is_terminal,
                               .terminal = is_terminal ? descriptor_.get() : -1,
                               .about = about},
                              bytes_, notes_);
  }

  [[nodiscard]] output::RowSink* sink() { return sink_.get(); }
  [[nodiscard]] const std::string& file() const { return file_; }

  [[nodiscard]] bool is_same_file(const One& other) const {
    struct stat one {};
    struct stat another {};
    return is_regular(descriptor_.get(), one) && is_regular(other.descriptor_.get(), another) &&
           one.st_dev == another.st_dev && one.st_ino == another.st_ino;
  }

  // Standard output may be a file that a shell appends to.
  Expected<void> empty() {
    is_empty_ = true;
    struct stat status {};
    if (file_ == kStandardOutput || !is_regular(descriptor_.get(), status)) return {};
    return ftruncate(descriptor_.get(), 0) == 0 ? Expected<void>() : failed(errno);
  }

  // A reader that has gone away had enough.
  Expected<void> close(const Error* problem) {
    CLEW_TRY(sink_->close(problem));
    if (!is_empty_ && bytes_.has_more()) CLEW_TRY(empty());
    bytes_.flush();
    const int error = bytes_.error();
    return error == 0 || error == EPIPE ? Expected<void>() : failed(error);
  }

 private:
  [[nodiscard]] Expected<void> failed(int error) const {
    return fail(ErrorCode::Io,
                fmt::format("cannot write the answer{}: {}",
                            file_ == kStandardOutput ? "" : " to " + file_, error_text(error)));
  }

  std::string file_;
  FileDescriptor descriptor_;
  bool is_empty_ = false;
  output::FileSink bytes_;
  output::FileSink notes_;
  std::unique_ptr<output::RowSink> sink_;
};

Outputs::Outputs() = default;
Outputs::~Outputs() = default;

Expected<void> Outputs::open(const OutputArguments& arguments) {
  std::vector<std::string> files = arguments.files;
  if (files.empty()) files.emplace_back(kStandardOutput);
  std::vector<output::RowSink*> sinks;
  for (const std::string& file : files) {
    auto one = std::make_unique<One>(file, CLEW_TRY(open_file(file)), format_of(arguments, file),
                                     arguments.about);
    for (const auto& other : all_) {
      if (file != other->file() && !one->is_same_file(*other)) continue;
      return fail(
          ErrorCode::InvalidQuery,
          fmt::format("{} and {} are one file; each -o needs its own", other->file(), file));
    }
    sinks.push_back(one->sink());
    all_.push_back(std::move(one));
  }
  sink_.emplace(std::move(sinks));
  return {};
}

Expected<void> Outputs::accept(output::Columns) {
  for (const auto& one : all_)
    CLEW_TRY(one->empty());
  return {};
}

std::vector<Error> Outputs::close(const Error* error) {
  std::vector<Error> errors;
  for (const auto& one : all_) {
    if (auto closed = one->close(error); !closed) errors.push_back(std::move(closed).error());
  }
  return errors;
}

}  // namespace clew::cmd
