// SPDX-License-Identifier: Apache-2.0
// Errors are values: every stage returns Expected<T>, and CLEW_TRY passes a failure up.
// Nothing in Clew throws; a leftover std::bad_alloc becomes a message in main.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace clew {

enum class ErrorCode : uint8_t {
  InvalidQuery,  // The text of a query or program is wrong; the message has the place.
  NotFound,      // A process, module, function or file that was named does not exist.
  Refused,       // It exists, and Clew will not touch it; the message says why.
  Io,            // The system said no; the message has the call and errno's text.
  Limit,         // A named limit was reached.
};

struct Error {
  ErrorCode code;
  std::string
      message;  // One line, lower case, no final full stop. Diagnostics may have more lines.
};

template <typename T>
class [[nodiscard]] Expected : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

namespace detail {
template <typename T>
T take(Expected<T>&& result) {
  return std::move(*result);
}
inline void take(Expected<void>&&) {}
}  // namespace detail

}  // namespace clew

// The value of `expression`, or return its error from the enclosing function.
#define CLEW_TRY(expression)                                                         \
  __extension__({                                                                    \
    auto clew_try_result = (expression);                                             \
    if (!clew_try_result) return tl::unexpected(std::move(clew_try_result).error()); \
    clew::detail::take(std::move(clew_try_result));                                  \
  })
