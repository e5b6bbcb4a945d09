// SPDX-License-Identifier: Apache-2.0
#include "base/run_program.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/spawn_attributes.h"

namespace clew {
namespace {

tl::unexpected<Error> fail_call(std::string_view call) {
  return fail(ErrorCode::Io, fmt::format("{}: {}", call, error_text(errno)));
}

Expected<FileDescriptor> memory_file(std::string_view content) {
  FileDescriptor file(memfd_create("clew", MFD_CLOEXEC));
  if (!file.valid()) return fail_call("memfd_create");
  while (!content.empty()) {
    const ssize_t written = write(file.get(), content.data(), content.size());
    if (written < 0 && errno != EINTR) return fail_call("write");
    content.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  if (lseek(file.get(), 0, SEEK_SET) < 0) return fail_call("lseek");
  return file;
}

Expected<std::string> content_of(const FileDescriptor& file) {
  std::string content;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count =
        pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(content.size()));
    if (count == 0) return content;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_call("pread");
    content.append(buffer.data(), static_cast<size_t>(count));
    if (content.size() > kProgramOutputBytesMax)
      return fail(ErrorCode::Limit, "the program's output is too large");
  }
}

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  void duplicate(const FileDescriptor& from, int to) {
    posix_spawn_file_actions_adddup2(&actions_, from.get(), to);
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// Its wait status.
Expected<int> wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return fail_call("waitpid");
  }
  return status;
}

}  // namespace

Expected<FinishedProgram> run_program(std::vector<std::string> words, std::string_view input) {
  const FileDescriptor in = CLEW_TRY(memory_file(input));
  const FileDescriptor out = CLEW_TRY(memory_file(""));
  const FileDescriptor messages = CLEW_TRY(memory_file(""));
  SpawnActions actions;
  actions.duplicate(in, STDIN_FILENO);
  actions.duplicate(out, STDOUT_FILENO);
  actions.duplicate(messages, STDERR_FILENO);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const SpawnAttributes attributes;
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, argv[0], actions.get(), attributes.get(), argv.data(), environ);
  if (error != 0) {
    // Of a name: a folder of PATH, or what it has of that name, is not ours to run.
    const bool is_barred =
        (error == EACCES || error == ENOTDIR) && words[0].find('/') == std::string::npos;
    const bool is_missing = error == ENOENT || is_barred;
    return fail(is_missing ? ErrorCode::NotFound : ErrorCode::Io, error_text(error));
  }
  const int status = CLEW_TRY(wait_for(pid));
  FinishedProgram result;
  result.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  result.output = CLEW_TRY(content_of(out));
  result.messages = CLEW_TRY(content_of(messages));
  return result;
}

}  // namespace clew
