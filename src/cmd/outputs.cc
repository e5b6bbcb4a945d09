// SPDX-License-Identifier: Apache-2.0
#include "cmd/outputs.h"

#include <algorithm>
#include <cerrno>
#include <optional>
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

// `is_new`: it was not there.
Expected<FileDescriptor> open_file(const std::string& file, bool& is_new) {
  if (file == kStandardOutput) return FileDescriptor(dup(STDOUT_FILENO));
  FileDescriptor made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  is_new = made.valid();
  if (is_new) return made;
  FileDescriptor descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (descriptor.valid()) return descriptor;
  return fail(ErrorCode::Io, fmt::format("cannot write {}: {}", file, error_text(errno)));
}

}  // namespace

void declare_outputs(CLI::App& app, OutputArguments& arguments) {
  std::vector<std::string> names;
  for (const output::FormatRow& row : output::formats())
    names.emplace_back(row.name);
  std::vector<CLI::Option*> options = {
      app.add_option("--format", arguments.format,
                     fmt::format("how the answer is written: {}", fmt::join(names, ", ")))
          ->check(CLI::IsMember(names).description(""))};
  for (const output::FormatRow& row : output::formats()) {
    if (row.format == output::Format::Text) continue;
    const std::string name(row.name);
    auto* option = app.add_flag_callback(
        "--" + name, [&arguments, name] { arguments.format = name; }, std::string(row.help));
    for (CLI::Option* other : options)
      option->excludes(other);
    options.push_back(option);
  }
  app.add_option("-o,--output", arguments.files,
                 "write the answer to this file (-: standard output), whose extension may say the "
                 "format; may be given several times")
      ->allow_extra_args(false);
}

const output::FormatRow& format_of(const OutputArguments& arguments, const std::string& file) {
  const output::FormatRow* const named = output::format_named(arguments.format);
  const output::FormatRow* const by_file = output::format_of_file(file);
  if (named != nullptr && (arguments.files.size() <= 1 || by_file == nullptr)) return *named;
  return by_file == nullptr ? output::formats().front() : *by_file;
}

// Standard error, where several formats say the same of one answer.
class Outputs::Notes final : public output::ByteSink {
 public:
  void write(std::string_view text) override {
    if (text != last_) bytes_.write(text);
    last_ = text;
  }
  void flush() override { bytes_.flush(); }
  [[nodiscard]] bool failed() const override { return bytes_.failed(); }

 private:
  output::FileSink bytes_{STDERR_FILENO};
  std::string last_;
};

// One place, its format, and the sink that writes it.
class Outputs::One {
 public:
  One(std::string file, Notes& notes) : file_(std::move(file)), notes_(notes) {}
  One(const One&) = delete;
  One& operator=(const One&) = delete;
  // A file that was made for an answer which never began goes, if nothing is in it.
  ~One() {
    struct stat ours {};
    struct stat there {};
    const bool is_bare = is_new_ && !is_empty_ && is_regular(ours) && ours.st_size == 0;
    if (!is_bare || stat(file_.c_str(), &there) != 0) return;
    if (ours.st_dev == there.st_dev && ours.st_ino == there.st_ino) (void)unlink(file_.c_str());
  }

  Expected<void> open(const output::FormatRow& format, const OutputArguments& arguments) {
    format_ = &format;
    output::SinkOptions options{.format = format.format, .about = arguments.about};
    if (format.open != nullptr) return open_by_name(format, options);
    descriptor_ = CLEW_TRY(open_file(file_, is_new_));
    if (isatty(descriptor_.get()) == 1) {
      options.redraw = true;
      options.terminal = descriptor_.get();
    }
    bytes_.emplace(descriptor_.get());
    if (arguments.patience) bytes_->set_patience(*arguments.patience);
    sink_ = output::make_sink(options, *bytes_, notes_);
    return {};
  }

  [[nodiscard]] output::RowSink* sink() { return sink_.get(); }
  [[nodiscard]] const output::FormatRow& format() const { return *format_; }
  [[nodiscard]] const std::string& file() const { return file_; }

  [[nodiscard]] bool is_same_file(const One& other) const {
    struct stat one {};
    struct stat another {};
    return is_regular(one) && other.is_regular(another) && one.st_dev == another.st_dev &&
           one.st_ino == another.st_ino;
  }

  // The answer begins: the file holds it and nothing else.
  void begin() {
    if (auto done = empty(); !done) problem_ = std::move(done).error();
  }

  // A reader that has gone away had enough. A file keeps what it has where no answer began.
  Expected<void> close(const Error* problem, bool is_told) {
    if (problem_) return tl::unexpected(*problem_);
    if (problem != nullptr && !is_empty_ && has_old_answer()) return {};
    CLEW_TRY(sink_->close(problem));
    if (!bytes_) return {};
    if (!is_empty_ && bytes_->has_more()) CLEW_TRY(empty());
    bytes_->flush();
    const int error = bytes_->error();
    if (error == ETIMEDOUT && !is_told) {
      return fail(ErrorCode::Io, fmt::format("{} took nothing for as long as --idle says: the rest "
                                             "of the answer is lost",
                                             file_ == kStandardOutput ? "standard output" : file_));
    }
    const bool is_done = error == 0 || error == EPIPE || error == ETIMEDOUT;
    return is_done ? Expected<void>() : failed(error);
  }
  [[nodiscard]] bool is_unread() const { return bytes_ && bytes_->error() == ETIMEDOUT; }

 private:
  // Standard output may be a file that a shell appends to.
  Expected<void> empty() {
    is_empty_ = true;
    struct stat status {};
    if (file_ == kStandardOutput || !bytes_ || !is_regular(status)) return {};
    return ftruncate(descriptor_.get(), 0) == 0 ? Expected<void>() : failed(errno);
  }

  Expected<void> open_by_name(const output::FormatRow& format, const output::SinkOptions& options) {
    if (file_ != kStandardOutput) {
      sink_ = CLEW_TRY(format.open(options, file_));
      return {};
    }
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("{} is a file, not a text for standard output: name it, say -o answer.{}",
                    format.name, format.extension));
  }

  [[nodiscard]] bool has_old_answer() const {
    struct stat status {};
    return bytes_ && file_ != kStandardOutput && is_regular(status) && status.st_size > 0;
  }

  [[nodiscard]] bool is_regular(struct stat& status) const {
    const int done = bytes_ ? fstat(descriptor_.get(), &status) : stat(file_.c_str(), &status);
    return done == 0 && S_ISREG(status.st_mode);
  }

  [[nodiscard]] Expected<void> failed(int error) const {
    return fail(ErrorCode::Io,
                fmt::format("cannot write the answer{}: {}",
                            file_ == kStandardOutput ? "" : " to " + file_, error_text(error)));
  }

  std::string file_;
  const output::FormatRow* format_ = nullptr;  // In the registry.
  FileDescriptor descriptor_;
  bool is_new_ = false;                    // We have made it.
  bool is_empty_ = false;                  // We have emptied it.
  std::optional<Error> problem_;           // As it was emptied.
  std::optional<output::FileSink> bytes_;  // None: the sink has the file itself.
  Notes& notes_;
  std::unique_ptr<output::RowSink> sink_;
};

// Empties the files as the answer begins.
class Outputs::Beginning final : public output::FanOut {
 public:
  Beginning(Outputs& outputs, std::vector<output::RowSink*> sinks)
      : FanOut(std::move(sinks)), outputs_(outputs) {}
  void begin(output::Columns columns, output::RowMode mode) override;

 private:
  Outputs& outputs_;
};

Outputs::Outputs() : notes_(std::make_unique<Notes>()) {}
Outputs::~Outputs() = default;

Expected<void> Outputs::open(const OutputArguments& arguments) {
  std::vector<std::string> files = arguments.files;
  if (files.empty()) files.emplace_back(kStandardOutput);
  std::vector<output::RowSink*> sinks;
  for (const std::string& file : files) {
    auto one = std::make_unique<One>(file, *notes_);
    CLEW_TRY(one->open(format_of(arguments, file), arguments));
    for (const auto& other : all_) {
      if (file != other->file() && !one->is_same_file(*other)) continue;
      return fail(
          ErrorCode::InvalidQuery,
          fmt::format("{} and {} are one file; each -o needs its own", other->file(), file));
    }
    sinks.push_back(one->sink());
    all_.push_back(std::move(one));
  }
  CLEW_TRY(metrics_.open(arguments.metrics, arguments.about, arguments.query_name, *notes_));
  for (output::RowSink* const sink : metrics_.sinks())
    sinks.push_back(sink);
  sink_ = std::make_unique<Beginning>(*this, std::move(sinks));
  return {};
}

bool Outputs::is_unread() {
  is_known_unread_ =
      metrics_.sinks().empty() &&
      std::all_of(all_.begin(), all_.end(), [](const auto& one) { return one->is_unread(); });
  return is_known_unread_;
}

output::RowSink& Outputs::sink() {
  return *sink_;
}

Expected<void> Outputs::accept(output::Columns columns) const {
  for (const auto& one : all_)
    CLEW_TRY(output::check_columns(one->format(), columns));
  return metrics_.accept(columns);
}

void Outputs::Beginning::begin(output::Columns columns, output::RowMode mode) {
  for (const auto& one : outputs_.all_)
    one->begin();
  FanOut::begin(columns, mode);
}

std::vector<Error> Outputs::close(const Error* error) {
  const bool is_told = std::exchange(is_known_unread_, false);
  std::vector<Error> errors;
  for (const auto& one : all_) {
    if (auto closed = one->close(error, is_told); !closed)
      errors.push_back(std::move(closed).error());
  }
  for (Error& lost : metrics_.close())
    errors.push_back(std::move(lost));
  return errors;
}

}  // namespace clew::cmd
