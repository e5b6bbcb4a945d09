// SPDX-License-Identifier: Apache-2.0
// Finds the file, and has clang compile what is C.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/nearest.h"
#include "base/run_program.h"
#include "extension/extension.h"

namespace clew::extension {
namespace {

namespace fs = std::filesystem;

// Newer ones first; all of them know BPF's version 3.
constexpr const char* kCompilers[] = {"clang-19", "clang-18", "clang-17", "clang-16",
                                      "clang-15", "clang-14", "clang"};

constexpr const char* kOptions[] = {"-target",
                                    "bpf",
                                    "-mcpu=v3",
                                    "-O2",
                                    "-mllvm",
                                    "-replexitval=never",  // A sum's closed form needs 128 bits.
                                    "-g",
                                    "-ffreestanding",
                                    "-ferror-limit=5",  // What follows is mostly of the first.
                                    "-Werror=vla",
                                    "-Werror=alloca",
                                    "-fno-color-diagnostics",
                                    "-fno-crash-diagnostics"};

constexpr uint64_t kFileBytesMax = 16U << 20;

// Before it is read or given to a compiler.
Expected<void> check_file(const fs::path& path) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::NotFound, fmt::format("cannot read {}: {}", path.string(), why));
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    return fail(ErrorCode::NotFound, fmt::format("no file {}", path.string()));
  if (error) return refuse(error.message());
  if (fs::is_directory(status)) return refuse("it is a directory; --ext takes a file");
  if (!fs::is_regular_file(status)) return refuse("it is no regular file");
  if (access(path.c_str(), R_OK) != 0) return refuse(error_text(errno));
  const uint64_t size = fs::file_size(path, error);
  if (error) return refuse(error.message());
  if (size == 0) return refuse("it is empty");
  if (size <= kFileBytesMax) return {};
  return refuse(
      fmt::format("it has {} MiB, at most {} are possible", size >> 20, kFileBytesMax >> 20));
}

Expected<std::string> content_of(const fs::path& path) {
  CLEW_TRY(check_file(path));
  std::ifstream file(path, std::ios::binary);
  std::string content(std::istreambuf_iterator<char>(file), {});
  if (file.good() || file.eof()) return content;
  return fail(ErrorCode::NotFound, fmt::format("cannot read {}", path.string()));
}

constexpr std::string_view kErrorMark = "error: ";

// FILE.c:LINE:COLUMN of the first error, or FILE.c:LINE where the back end names no column; FILE.c
// when it names neither.
std::string place_of_error(std::string_view messages, const std::string& path) {
  constexpr std::string_view kBackEnd = "Error at line ";
  const size_t error = messages.find(kErrorMark);
  const size_t line = messages.rfind('\n', error) + 1;
  const bool has_place = error != std::string_view::npos && messages.substr(line).starts_with(path);
  if (has_place) return std::string(messages.substr(line, messages.find(": ", line) - line));
  const size_t back_end = messages.find(kBackEnd);
  if (back_end == std::string_view::npos) return path;
  const std::string_view number = messages.substr(back_end + kBackEnd.size());
  return fmt::format("{}:{}", path, number.substr(0, number.find(':')));
}

// The first lines, and how many more there are. Without the back end's list of what it has in its
// hands: addresses.
std::string shortened(std::string_view messages) {
  constexpr size_t kLinesMax = 24;
  std::string shown;
  size_t count = 0;
  while (!messages.empty()) {
    const size_t end = std::min(messages.find('\n'), messages.size() - 1) + 1;
    const std::string_view line = messages.substr(0, end);
    messages.remove_prefix(end);
    const bool is_of_back_end =
        line.starts_with("  ") && line.substr(line.find_first_not_of(' ')).starts_with("0x");
    if (is_of_back_end || line == "\n") continue;
    if (++count <= kLinesMax) shown += line;
  }
  if (count > kLinesMax) shown += fmt::format("… and {} lines more\n", count - kLinesMax);
  return shown;
}

// What clang says, without its own stack when it gives up, and with what it does not know.
std::string explained(std::string messages) {
  const size_t crash = messages.find("PLEASE submit a bug report");
  if (crash != std::string::npos) messages.resize(crash);
  std::string shown = shortened(messages);
  const bool computes =
      messages.find("sf") != std::string::npos || messages.find("df") != std::string::npos;
  if (computes && messages.find("A call to built-in function '__") != std::string::npos)
    shown += "an extension has no floating point; compute with integers (thousandths, say)\n";
  if (messages.find("signed division") != std::string::npos)
    shown += "an extension divides signed numbers by clew_divide(a, b), clew_modulo(a, b)\n";
  while (!shown.empty() && shown.back() == '\n')
    shown.pop_back();
  return shown;
}

Expected<std::string> compile(const std::string& path, const Library& library) {
  for (const char* compiler : kCompilers) {
    std::vector<std::string> words = {compiler};
    words.insert(words.end(), std::begin(kOptions), std::end(kOptions));
    words.insert(words.end(), {"-I", library.folder, "-c", "-o", "-", "--", path});
    Expected<FinishedProgram> run = run_program(std::move(words), "");
    if (!run && run.error().code == ErrorCode::NotFound) continue;
    if (!run) return tl::unexpected(run.error());
    if (run->succeeded) return std::move(run->output);
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("{}: error: the extension does not compile; {} says:\n{}",
                    place_of_error(run->messages, path), compiler, explained(run->messages)));
  }
  return fail(ErrorCode::NotFound, fmt::format("compiling {} needs clang; install it, or give the "
                                               "object that clang -target bpf -O2 -g -c made",
                                               path));
}

Expected<Extension> read_text(const std::string& object, const fs::path& path) {
  const auto* begin = reinterpret_cast<const uint8_t*>(object.data());
  return read({begin, object.size()}, path.stem().string());
}

}  // namespace

std::vector<std::string> names_in(const Library& library) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(library.folder, error)) {
    if (entry.path().extension() == ".o") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Expected<Extension> load(const std::string& what, const Library& library) {
  const fs::path path(what);
  if (path.extension() == ".c") {
    CLEW_TRY(check_file(path));
    return read_text(CLEW_TRY(compile(what, library)), path);
  }
  if (path.extension() == ".o") return read_text(CLEW_TRY(content_of(path)), path);
  const fs::path shipped = fs::path(library.folder) / (what + ".o");
  std::error_code error;
  if (what.find('/') == std::string::npos && fs::exists(shipped, error))
    return read_text(CLEW_TRY(content_of(shipped)), shipped);
  if (fs::is_directory(path, error)) CLEW_TRY(check_file(path));
  const std::vector<std::string> names = names_in(library);
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = nearest_name(what, views);
  return fail(ErrorCode::NotFound,
              fmt::format("no extension '{}'{}; expected FILE.c, FILE.o, or one of: {}", what,
                          did_you_mean(near), fmt::join(names, ", ")));
}

}  // namespace clew::extension
