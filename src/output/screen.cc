// SPDX-License-Identifier: Apache-2.0
#include "output/screen.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>

#include "output/format.h"

namespace clew::output {

std::string_view first_columns(std::string_view line, size_t width) {
  size_t at = 0;
  for (size_t seen = 0; at < line.size(); ++at) {
    const bool starts = (static_cast<unsigned char>(line[at]) & 0xC0) != 0x80;
    if (starts && seen++ == width) break;
  }
  return line.substr(0, at);
}

ScreenSize size_of_terminal(int fd) {
  winsize window{};
  if (fd < 0 || ioctl(fd, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) {
    return {};
  }
  return {.columns = window.ws_col, .rows = window.ws_row};
}

std::string Screen::erase_sequence(const ScreenSize& size) {
  size_t rows = 0;
  for (const size_t width : std::exchange(widths_, {})) {
    rows += std::max<size_t>(1, (width + size.columns - 1) / size.columns);
  }
  rows = std::min<size_t>(rows, size.rows - 1);  // What scrolled off cannot be reached.
  if (rows == 0) return {};
  return fmt::format("\x1b[{}A\r\x1b[J", rows);
}

void Screen::erase(const ScreenSize& size) {
  bytes_.write(erase_sequence(size));
}

void Screen::draw(std::string_view text, const ScreenSize& size) {
  std::string out = erase_sequence(size);
  const std::vector<std::string_view> lines = lines_in(text);
  const size_t room = std::max<size_t>(size.rows, 2) - 1;
  const size_t shown = lines.size() <= room ? lines.size() : room - 1;
  const auto put = [&](std::string_view line) {
    const std::string_view visible = first_columns(line, size.columns);
    widths_.push_back(display_width(visible));
    out += visible;
    out += '\n';
  };
  for (size_t i = 0; i < shown; ++i)
    put(lines[i]);
  if (shown < lines.size()) put(fmt::format("... {} more lines", lines.size() - shown));
  bytes_.write(out);
}

}  // namespace clew::output
