// SPDX-License-Identifier: Apache-2.0
// The row sinks, and the places they write to.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "output/row_sink.h"

namespace clew::output {

enum class Format : uint8_t { Text, Json, Csv, Chart, Stream, Sqlite, Folded, Svg, Metrics };

// What a format that stands by itself says of its session.
struct About {
  std::string query{};    // As it was asked.
  std::string version{};  // Of Clew.
  std::string host{};
  int64_t started_ns = 0;  // Of the time of day.
  // What was to be traced: {"pid", "17"}, {"name", "redis-*"}, {"command", "ls -l"}, {"file", "x"}.
  std::vector<std::pair<std::string, std::string>> targets{};
};

// Of this machine and version, which begins now; without targets.
[[nodiscard]] About about_here(std::string query);

struct SinkOptions {
  Format format = Format::Text;
  // Redraw each interval in place (ANSI). Only for Text and Chart on a terminal.
  bool redraw = false;
  // Its size is asked before each redraw, so a resize is seen; -1 = 80 x 24.
  int terminal = -1;
  About about{};
};

// What options and files of names say of a format. A new one is a row in formats.cc.
struct FormatRow {
  Format format;
  std::string_view name;       // As in --format, and an option of its own.
  std::string_view extension;  // Of its files, without a dot; empty: no file asks for it.
  std::string_view help;
  // One of the two: of a format that is a stream of bytes, and of one that writes a file by its
  // name (never a pipe), which open() may find to be somebody else's.
  std::unique_ptr<RowSink> (*make)(const SinkOptions& options, ByteSink& bytes, ByteSink& notes);
  Expected<std::unique_ptr<RowSink>> (*open)(const SinkOptions& options,
                                             const std::string& file) = nullptr;
  bool needs_stacks = false;        // And a number for each, see folding.h.
  bool has_several_tables = false;  // An answer may have several, RowSink::begin_tables().
  bool needs_metrics = false;       // See metric_rows.h.
};
// One for each Format, in its order.
[[nodiscard]] std::span<const FormatRow> formats();
[[nodiscard]] const FormatRow& row_of(Format format);
// Whether an answer of these columns can be written so; the error says what is missing.
Expected<void> check_columns(const FormatRow& format, Columns columns);
// Null: none has this name.
[[nodiscard]] const FormatRow* format_named(std::string_view name);
// All of them, as a list for messages.
[[nodiscard]] std::string format_names();
// By the extension of the last part of `path`; null when it asks for none.
[[nodiscard]] const FormatRow* format_of_file(std::string_view path);

// Of a format that is a stream of bytes. `bytes` is borrowed and must outlive the sink. Losses go
// to the same place, under the table (Csv: to `notes`, since a CSV file has no place for them).
std::unique_ptr<RowSink> make_sink(const SinkOptions& options, ByteSink& bytes, ByteSink& notes);

// Writes all of it, as long as some is taken at least once in `patience`, else ETIMEDOUT. 0, or
// errno of what failed.
[[nodiscard]] int write_patiently(int fd, std::string_view bytes,
                                  std::chrono::nanoseconds patience);

// Writes to a borrowed file descriptor, at flush(), at its end, or when there is much; short writes
// are continued, EINTR is retried.
class FileSink final : public ByteSink {
 public:
  explicit FileSink(int fd) : fd_(fd) {}
  ~FileSink() override { flush_all(); }
  void write(std::string_view bytes) override;
  void flush() override { flush_all(); }
  // How long a reader may take nothing: then all that follows is lost, by ETIMEDOUT. At first for
  // ever.
  void set_patience(std::chrono::nanoseconds patience) { patience_ = patience; }
  [[nodiscard]] bool failed() const override { return error_ != 0; }
  [[nodiscard]] bool ready() const override;
  // What was written and is not out yet.
  [[nodiscard]] bool has_more() const { return !unwritten_.empty(); }
  [[nodiscard]] int error() const { return error_; }  // errno of the first failure.

 private:
  void flush_all();

  int fd_;
  int error_ = 0;
  std::chrono::nanoseconds patience_ = std::chrono::nanoseconds::max();
  std::string unwritten_;
};

class StringSink final : public ByteSink {
 public:
  void write(std::string_view bytes) override { text_ += bytes; }
  [[nodiscard]] bool failed() const override { return false; }
  [[nodiscard]] const std::string& text() const { return text_; }
  std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

}  // namespace clew::output
