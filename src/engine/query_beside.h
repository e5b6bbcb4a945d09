// SPDX-License-Identifier: Apache-2.0
// A query over sources of the kernel, in a process of its own beside what its owner does, who is
// told whom each row is about. So the owner waits for nothing but a descriptor, and an end of the
// query is none of the owner's; the kernel ends it with its owner, however that one ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "query/diagnostic.h"

namespace clew::engine {

class QueryBeside {
 public:
  // Errors: InvalidQuery, for what can be said without the process.
  static Expected<void> check(const query::Text& text);
  // About the process, and what it forks from now on. The caller has one thread, and may get
  // the end of the query's process from waitpid(2), where it is nobody's. Errors: Io.
  static Expected<QueryBeside> start(const query::Text& text, pid_t process);
  QueryBeside(QueryBeside&&) noexcept = default;
  QueryBeside& operator=(QueryBeside&&) = delete;
  ~QueryBeside();

  enum class Kind : uint32_t {
    Armed,    // Rows may come.
    Row,      // About `process`, and `thread`, if that is known.
    Warning,  // `text`
    Failed,   // `error`; nothing comes any more.
    Ended,    // Nor here: the processes have.
  };
  struct News {
    Kind kind = Kind::Row;
    pid_t process = 0;
    pid_t thread = 0;
    std::string text;
    std::optional<Error> error = {};
  };
  // Readable when there are any; -1 behind the last ones.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  // Does not wait.
  std::optional<News> next();

 private:
  QueryBeside(pid_t pid, FileDescriptor process, FileDescriptor socket)
      : pid_(pid), process_(std::move(process)), socket_(std::move(socket)) {}

  pid_t pid_;
  FileDescriptor process_;  // pidfd_open(2)
  FileDescriptor socket_;
};

}  // namespace clew::engine
