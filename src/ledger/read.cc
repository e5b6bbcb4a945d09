// SPDX-License-Identifier: Apache-2.0
#include "ledger/read.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "ledger/folder.h"

namespace clew::ledger {
namespace {

// Of a file: rotated late, it has somewhat more.
constexpr size_t kReadBytesMax = 2 * kFileBytesMax;

tl::unexpected<Error> cannot_read(const std::string& path, int error) {
  return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(error)));
}

Expected<std::string> read_whole(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR)) return std::string();
  if (!file.valid()) return cannot_read(path, errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return cannot_read(path, errno);
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::Io, fmt::format("{} is no file", path));
  std::string text(std::min<size_t>(static_cast<size_t>(status.st_size), kReadBytesMax), '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_read(path, errno);
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

class Reader {
 public:
  void add(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      add_line(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }
  Told take() { return std::move(told_); }

 private:
  void add_line(std::string_view text) {
    if (text.empty()) return;
    std::optional<Line> line = parse_line(text);
    if (!line) {
      ++told_.damaged_lines;
      return;
    }
    if (line->beginning) {
      place_of_[line->beginning->session] = told_.sessions.size();
      told_.sessions.push_back({.beginning = std::move(*line->beginning)});
    }
    if (!line->ending) return;
    // One whose beginning has been forgotten is as good as forgotten.
    const auto place = place_of_.find(line->ending->session);
    if (place == place_of_.end()) return;
    ToldSession& session = told_.sessions[place->second];
    // One that was killed behind its end has another one, by who found that.
    if (session.ending) return;
    session.ending = std::move(line->ending);
    session.state = State::Over;
  }

  Told told_;
  std::map<std::string, size_t> place_of_;
};

// Whether the process of a session that has not told its end holds its mark.
State state_of(const std::string& folder, const std::string& session) {
  if (session.find('/') != std::string::npos) return State::Unknown;
  const std::string path = fmt::format("{}/{}/{}", folder, kRunningFolder, session);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return State::Unknown;
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(file.get(), F_GETLK, &lock) != 0) return State::Unknown;
  return lock.l_type == F_UNLCK ? State::Gone : State::Running;
}

Expected<Told> read_once(const std::string& folder) {
  Reader reader;
  for (const char* name : {kOlderFile, kSessionsFile})
    reader.add(CLEW_TRY(read_whole(fmt::format("{}/{}", folder, name))));
  Told told = reader.take();
  for (ToldSession& session : told.sessions)
    if (!session.ending) session.state = state_of(folder, session.beginning.session);
  return told;
}

}  // namespace

std::string_view status_of(const ToldSession& session) {
  switch (session.state) {
    case State::Running:
      return "running";
    case State::Over:
      return name_of(session.ending->status);
    case State::Gone:
      return name_of(Status::Killed);
    case State::Unknown:
      break;
  }
  return "unknown";
}

Expected<Told> read_sessions(const std::string& folder) {
  Told told = CLEW_TRY(read_once(folder));
  const bool is_settled =
      std::none_of(told.sessions.begin(), told.sessions.end(),
                   [](const ToldSession& one) { return one.state == State::Unknown; });
  // One that ended between the two looks has told it by now.
  return is_settled ? Expected<Told>(std::move(told)) : read_once(folder);
}

}  // namespace clew::ledger
