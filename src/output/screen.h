// SPDX-License-Identifier: Apache-2.0
// A part of a terminal that is drawn again and again in the same place. Lines that are too long are
// cut, so the number of rows is known; when the window was made narrower since, the terminal has
// folded the old lines, which is taken into account.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "output/row_sink.h"

namespace clew::output {

struct ScreenSize {
  uint32_t columns = 80;
  uint32_t rows = 24;
};

// What TIOCGWINSZ says of a terminal; 80 x 24 when it says nothing.
[[nodiscard]] ScreenSize size_of_terminal(int fd);

// The first `width` columns of a line of valid UTF-8.
[[nodiscard]] std::string_view first_columns(std::string_view line, size_t width);

class Screen {
 public:
  explicit Screen(ByteSink& bytes) : bytes_(bytes) {}
  // Replaces what the last call drew. At most `size.rows` - 1 lines are shown; a last line says how
  // many are not.
  void draw(std::string_view text, const ScreenSize& size);
  // Takes away what was drawn.
  void erase(const ScreenSize& size);
  // Others have written since: what was drawn stays where it is.
  void forget() { widths_.clear(); }

 private:
  [[nodiscard]] std::string erase_sequence(const ScreenSize& size);
  ByteSink& bytes_;
  std::vector<size_t> widths_;  // Of the lines drawn.
};

}  // namespace clew::output
