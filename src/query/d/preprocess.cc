// SPDX-License-Identifier: Apache-2.0
// Runs the preprocessor with memory files as its input and output, so that no order of reading
// and writing can make both sides wait.
#include "query/d/preprocess.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "query/d/spawn_attributes.h"

namespace clew::query::d {
namespace {

// Programs find out with the first ones that they are D, and on what. The others take from the
// system's headers what is C's compilers' own.
constexpr std::array<const char*, 27> kArguments = {"-D__linux",
                                                    "-D__linux__",
                                                    "-D__unix",
                                                    "-D__unix__",
                                                    "-D__x86_64",
                                                    "-D__amd64",
                                                    "-D__SUNW_D=1",
                                                    "-D__SUNW_D_64",
                                                    "-D__SUNW_D_VERSION=0x02000000",
                                                    "-D__attribute__(x)=",
                                                    "-D__asm__(x)=",
                                                    "-D__extension__=",
                                                    "-D__const=const",
                                                    "-D__inline=",
                                                    "-D__inline__=",
                                                    "-D__restrict=",
                                                    "-D__restrict__=",
                                                    "-D__signed__=signed",
                                                    "-D__volatile__=volatile",
                                                    "-D_Noreturn=",
                                                    "-D__builtin_va_list=void *",
                                                    "-D_Float32=float",
                                                    "-D_Float64=double",
                                                    "-D_Float128=long double",
                                                    "-D_Float32x=double",
                                                    "-D_Float64x=long double",
                                                    "-U__SIZEOF_INT128__"};
constexpr size_t kOutputBytesMax = size_t{64} << 20;

Expected<FileDescriptor> memory_file(std::string_view content) {
  FileDescriptor file(memfd_create("clew-d", MFD_CLOEXEC));
  if (!file.valid()) return fail(ErrorCode::Io, fmt::format("memfd_create: {}", error_text(errno)));
  while (!content.empty()) {
    const ssize_t written = write(file.get(), content.data(), content.size());
    if (written < 0 && errno != EINTR)
      return fail(ErrorCode::Io, fmt::format("write: {}", error_text(errno)));
    content.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  if (lseek(file.get(), 0, SEEK_SET) < 0)
    return fail(ErrorCode::Io, fmt::format("lseek: {}", error_text(errno)));
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
    if (count < 0) return fail(ErrorCode::Io, fmt::format("pread: {}", error_text(errno)));
    content.append(buffer.data(), static_cast<size_t>(count));
    if (content.size() > kOutputBytesMax)
      return fail(ErrorCode::Limit, "the preprocessor's output is too large");
  }
}

struct Streams {
  const FileDescriptor& input;
  const FileDescriptor& output;
  const FileDescriptor& messages;
};

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
Expected<int> run(const PreprocessOptions& options, const Streams& streams) {
  std::vector<std::string> words = {options.path};
  words.insert(words.end(), kArguments.begin(), kArguments.end());
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  words.emplace_back("-");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  SpawnActions actions;
  actions.duplicate(streams.input, STDIN_FILENO);
  actions.duplicate(streams.output, STDOUT_FILENO);
  actions.duplicate(streams.messages, STDERR_FILENO);
  const SpawnAttributes attributes;
  pid_t pid = 0;
  const int error = posix_spawn(&pid, options.path.c_str(), actions.get(), attributes.get(),
                                argv.data(), environ);
  if (error != 0) {
    return fail(ErrorCode::Io, fmt::format("failed to invoke C preprocessor {}: {}", options.path,
                                           error_text(error)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return fail(ErrorCode::Io, fmt::format("waitpid: {}", error_text(errno)));
  }
  return status;
}

// #! is no directive of C. Its line stays, empty, for the numbers of those that follow.
std::string_view without_interpreter(std::string_view text) {
  return text.starts_with("#!") ? text.substr(std::min(text.find('\n'), text.size())) : text;
}

}  // namespace

Expected<Preprocessed> preprocess(std::string_view text, const PreprocessOptions& options) {
  const FileDescriptor input = CLEW_TRY(memory_file(without_interpreter(text)));
  const FileDescriptor output = CLEW_TRY(memory_file(""));
  const FileDescriptor messages = CLEW_TRY(memory_file(""));
  const int status = CLEW_TRY(run(options, {input, output, messages}));
  Preprocessed result;
  result.text = CLEW_TRY(content_of(output));
  result.messages = CLEW_TRY(content_of(messages));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("Preprocessor failed to process input program{}{}",
                            result.messages.empty() ? "" : ":\n", result.messages));
  }
  return result;
}

}  // namespace clew::query::d
