// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/read_text.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "base/error_text.h"

namespace clew::engine {
namespace {

constexpr size_t kTextMaxBytes = size_t{64} << 20;

struct Close {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

}  // namespace

Expected<std::string> read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) {
    return fail(ErrorCode::Io, fmt::format("failed to open {}: {}", path, error_text(errno)));
  }
  std::string text;
  std::array<char, 65536> piece{};
  while (const size_t bytes = std::fread(piece.data(), 1, piece.size(), file.get())) {
    text.append(piece.data(), bytes);
    if (text.size() > kTextMaxBytes) {
      return fail(ErrorCode::Limit, fmt::format("failed to read {}: it is larger than {} bytes",
                                                path, kTextMaxBytes));
    }
  }
  if (std::ferror(file.get()) != 0) {
    return fail(ErrorCode::Io, fmt::format("failed to read {}: {}", path, error_text(errno)));
  }
  return text;
}

}  // namespace clew::engine
