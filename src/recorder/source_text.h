// SPDX-License-Identifier: Apache-2.0
// Lines -> their source text, where the source is there: under the path that the debug information
// has, or below a folder that the user names. A path of debug information may be anything, so
// nothing but a regular file of bounded size is opened, and what is printed has no control
// characters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clew::recorder {

class SourceText {
 public:
  // A file is looked for below the folders first, each with as much of its path as leads to one.
  explicit SourceText(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // Without the space around it. Nothing when there is no such file, or line.
  std::optional<std::string> line(const std::string& file, uint32_t line);
  // As it stands, and how many there are; 0 when there is no such file.
  std::optional<std::string> whole_line(const std::string& file, uint32_t line);
  size_t count(const std::string& file);
  // Of the file that was read: when it was written, in nanoseconds since 1970.
  std::optional<int64_t> written_at(const std::string& file);
  // Where it was found.
  std::optional<std::string> path_of(const std::string& file);

 private:
  struct Source {
    std::string path;
    std::string text;
    std::vector<size_t> lines;  // Where they begin.
    int64_t written_ns = 0;
  };
  std::optional<std::string_view> bytes_of(const std::string& file, uint32_t line);
  // Null: there is none.
  const Source* source_of(const std::string& file);
  std::optional<Source> find(const std::string& file);
  std::optional<Source> read(const std::string& path);

  std::vector<std::string> folders_;
  std::map<std::string, std::optional<Source>> sources_;
  size_t bytes_ = 0;  // Of all that were read.
};

}  // namespace clew::recorder
