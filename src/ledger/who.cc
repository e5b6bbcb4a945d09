// SPDX-License-Identifier: Apache-2.0
#include "ledger/who.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <optional>

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "base/file_descriptor.h"
#include "target/process.h"

namespace clew::ledger {
namespace {

// Empty where it cannot be read.
std::string beginning_of(const char* path) {
  constexpr size_t kBytesMax = 4096;
  const FileDescriptor file(open(path, O_RDONLY | O_CLOEXEC));
  std::string text(kBytesMax, '\0');
  const ssize_t count = read(file.get(), text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

// proc(5): (uid_t)-1 where nobody has logged in, as in a service. No file: no audit in the kernel.
std::optional<uid_t> login_uid() {
  const std::string text = beginning_of("/proc/self/loginuid");
  uid_t uid = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), uid);
  if (parsed.ec != std::errc() || uid == std::numeric_limits<uid_t>::max()) return std::nullopt;
  return uid;
}

// CLOCK_REALTIME of a moment that is counted in clock ticks after the machine's boot.
int64_t time_of_ticks(uint64_t ticks) {
  constexpr int64_t kSecond = 1'000'000'000;
  const auto per_second = sysconf(_SC_CLK_TCK);
  if (per_second <= 0) return 0;
  const int64_t booted = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
  return booted + static_cast<int64_t>(ticks) * (kSecond / per_second);
}

}  // namespace

std::string user_name(uid_t uid) {
  std::array<char, 16384> room{};
  passwd entry{};
  passwd* found = nullptr;
  const int status = getpwuid_r(uid, &entry, room.data(), room.size(), &found);
  return status == 0 && found != nullptr ? found->pw_name : "";
}

Who who_we_are() {
  Who who{.uid = getuid(), .user = user_name(getuid()), .login_uid = login_uid()};
  if (who.login_uid)
    who.login_user = *who.login_uid == who.uid ? who.user : user_name(*who.login_uid);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread.
  const char* const sudo = who.uid == 0 ? secure_getenv("SUDO_USER") : nullptr;
  if (sudo != nullptr) who.sudo_user = sudo;
  return who;
}

const std::string& acting_user(const Who& who) {
  return who.login_uid ? who.login_user : who.user;
}

TouchedProcess touched_process(pid_t pid) {
  const auto process = target::read_process(pid);
  if (!process) return {.pid = pid};
  return {.pid = pid,
          .name = target::program_name(*process),
          .started_ns = time_of_ticks(process->incarnation.start_ticks)};
}

std::string our_verb() {
  const std::string line = beginning_of("/proc/self/cmdline");
  const size_t end = std::min(line.size(), line.find('\0'));
  return end == line.size() ? "" : line.c_str() + end + 1;
}

}  // namespace clew::ledger
