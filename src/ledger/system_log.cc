// SPDX-License-Identifier: Apache-2.0
#include "ledger/system_log.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <string_view>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "base/file_descriptor.h"
#include "ledger/one_line.h"

namespace clew::ledger {
namespace {

constexpr int kAuthPriv = 10;  // syslog(3), LOG_AUTHPRIV >> 3
constexpr int kNotice = 5;
constexpr int kInformation = 6;
constexpr size_t kShownTargets = 4;
constexpr size_t kShownCharacters = 500;

bool send(const std::string& path, const std::string& datagram) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const ssize_t sent =
      sendto(socket.get(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  return sent == static_cast<ssize_t>(datagram.size());
}

bool is_outcome_bad(const Ending* ending) {
  return ending != nullptr && ending->status != Status::Ended && ending->status != Status::Stopped;
}

int priority_of(const Ending* ending) {
  return is_outcome_bad(ending) ? kNotice : kInformation;
}

std::string message_of(const Beginning& beginning, const Ending* ending) {
  const std::string what =
      fmt::format("{}: clew {} of {}", shown_who(beginning.who),
                  one_line(beginning.verb, kNameBytesMax), shown_targets(beginning, kShownTargets));
  if (ending == nullptr)
    return fmt::format("{} begins: {}", what, one_line(beginning.text, kShownCharacters));
  std::string text = fmt::format("{} {}", what, name_of(ending->status));
  if (ending->lasted_ns)
    text += fmt::format(" after {:.1f} s", static_cast<double>(*ending->lasted_ns) / 1e9);
  if (!ending->reason.empty()) text += ": " + one_line(ending->reason, kShownCharacters);
  if (ending->status == Status::Refused)
    text += fmt::format("; wanted: {}", one_line(beginning.text, kShownCharacters));
  return text;
}

class Fields {
 public:
  void add(std::string_view name, std::string_view value) {
    bytes_ += name;
    bytes_ += '\n';
    for (unsigned bit = 0; bit < 64; bit += 8)
      bytes_ += static_cast<char>(static_cast<uint64_t>(value.size()) >> bit & 0xFF);
    bytes_ += value;
    bytes_ += '\n';
  }
  template <typename Number>
  void add_number(std::string_view name, Number number) {
    add(name, fmt::to_string(number));
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void add_who(const Who& who, Fields& fields) {
  fields.add_number("CLEW_UID", who.uid);
  if (!who.user.empty()) fields.add("CLEW_USER", who.user);
  if (who.login_uid) fields.add_number("CLEW_LOGIN_UID", *who.login_uid);
  if (!who.login_user.empty()) fields.add("CLEW_LOGIN_USER", who.login_user);
  if (!who.sudo_user.empty()) fields.add("CLEW_SUDO_USER", who.sudo_user);
}

void add_ending(const Ending& ending, Fields& fields) {
  fields.add("CLEW_STATUS", name_of(ending.status));
  if (!ending.reason.empty())
    fields.add("CLEW_REASON", std::string_view(ending.reason).substr(0, kReasonBytesMax));
  if (ending.lasted_ns) fields.add_number("CLEW_LASTED_USEC", *ending.lasted_ns / 1000);
  if (ending.rows) fields.add_number("CLEW_ROWS", *ending.rows);
  fields.add_number("CLEW_MISSED", ending.missed);
  fields.add_number("CLEW_DROPPED", ending.dropped);
}

void tell(const Places& places, const Beginning& beginning, const Ending* ending) {
  if (send(places.journal, journal_datagram(beginning, ending))) return;
  (void)send(places.syslog, syslog_datagram(beginning, ending));
}

}  // namespace

std::string shown_who(const Who& who) {
  const auto shown = [](const std::string& name, uid_t uid) {
    return name.empty() ? fmt::format("uid {}", uid) : one_line(name, kNameBytesMax);
  };
  std::string user = shown(who.user, who.uid);
  if (who.login_uid && *who.login_uid != who.uid)
    return fmt::format("{} as {}", shown(who.login_user, *who.login_uid), user);
  if (who.sudo_user.empty()) return user;
  return fmt::format("{} as {}", one_line(who.sudo_user, kNameBytesMax), user);
}

std::string shown_targets(const Beginning& beginning, size_t most) {
  std::string text;
  const auto add = [&text](const std::string& one) { text += (text.empty() ? "" : ", ") + one; };
  const size_t count = std::min(most, beginning.processes.size());
  for (size_t i = 0; i < count; ++i) {
    const TouchedProcess& process = beginning.processes[i];
    add(process.name.empty()
            ? fmt::format("process {}", process.pid)
            : fmt::format("{} ({})", one_line(process.name, kNameBytesMax), process.pid));
  }
  if (beginning.process_count > count)
    add(fmt::format("{} more processes", beginning.process_count - count));
  if (beginning.is_kernel) add("kernel");
  if (beginning.is_new) add("new processes");
  return text.empty() ? "nothing" : text;
}

std::string journal_datagram(const Beginning& beginning, const Ending* ending) {
  Fields fields;
  fields.add("MESSAGE", message_of(beginning, ending));
  fields.add_number("PRIORITY", priority_of(ending));
  fields.add_number("SYSLOG_FACILITY", kAuthPriv);
  fields.add("SYSLOG_IDENTIFIER", "clew");
  const bool is_refused = ending != nullptr && ending->status == Status::Refused;
  fields.add("CLEW_EVENT", ending == nullptr ? "begin" : is_refused ? "refused" : "end");
  fields.add("CLEW_SESSION", beginning.session);
  fields.add("CLEW_VERB", std::string_view(beginning.verb).substr(0, kNameBytesMax));
  add_who(beginning.who, fields);
  // A field may be there several times.
  for (const TouchedProcess& process : beginning.processes)
    fields.add_number("CLEW_PID", process.pid);
  fields.add("CLEW_TARGETS", shown_targets(beginning, kProcessesMax));
  fields.add("CLEW_TEXT", std::string_view(beginning.text).substr(0, kTextBytesMax));
  fields.add("CLEW_TEXT_NAME", std::string_view(beginning.text_name).substr(0, kReasonBytesMax));
  if (ending != nullptr) add_ending(*ending, fields);
  return fields.take();
}

std::string syslog_datagram(const Beginning& beginning, const Ending* ending) {
  const std::time_t now = clock_ns(CLOCK_REALTIME) / 1'000'000'000;
  std::tm parts{};
  std::array<char, 32> time{};
  if (localtime_r(&now, &parts) != nullptr)
    (void)std::strftime(time.data(), time.size(), "%b %e %H:%M:%S", &parts);
  return fmt::format("<{}>{} clew[{}]: {}", kAuthPriv * 8 + priority_of(ending), time.data(),
                     beginning.clew_pid, message_of(beginning, ending));
}

void tell_system(const Places& places, const Beginning& beginning) {
  tell(places, beginning, nullptr);
}

void tell_system(const Places& places, const Beginning& beginning, const Ending& ending) {
  tell(places, beginning, &ending);
}

}  // namespace clew::ledger
