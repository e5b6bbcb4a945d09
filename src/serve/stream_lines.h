// SPDX-License-Identifier: Apache-2.0
// The bytes of a child's result stream, taken apart into lines. What is no line of such a stream is
// counted and left out: it would break the stream that it is passed on in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace clew::serve {

enum class LineWord : uint8_t { Session, Columns, Losses, End, Other, Broken };

struct StreamLine {
  LineWord word = LineWord::Other;  // The member that says what it is.
  std::string_view text{};          // The object; empty: Broken. Valid while it is being taken.
};

inline constexpr size_t kLineBytesMax = 4 << 20;

class StreamLines {
 public:
  using Take = std::function<void(const StreamLine&)>;
  // `take` gets the lines that end in `bytes`.
  void add(std::string_view bytes, const Take& take);
  // No more comes: what has no end was cut off.
  void finish(const Take& take);

 private:
  void add_part(std::string_view part);

  std::string begun_;
  bool is_too_long_ = false;
};

}  // namespace clew::serve
