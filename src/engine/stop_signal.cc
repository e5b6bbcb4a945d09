// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_signal.h"

#include <csignal>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace clew::engine {

bool has_stop_signal(int stop_descriptor) {
  pollfd readable{stop_descriptor, POLLIN, 0};
  return poll(&readable, 1, 0) > 0 && readable.revents != 0;
}

bool pass_on_signal(int stop_descriptor, std::span<const pid_t> commands) {
  bool is_passed_on = false;
  signalfd_siginfo signal{};
  // The descriptor does not block. SIGPIPE says that nobody reads any more, and is ours.
  while (read(stop_descriptor, &signal, sizeof signal) == sizeof signal) {
    const bool is_sent = signal.ssi_code <= 0;  // SI_USER and the like; the kernel's are above.
    const auto number = static_cast<int>(signal.ssi_signo);
    if (!is_sent || number == SIGPIPE) continue;
    for (const pid_t command : commands)
      is_passed_on |= kill(command, number) == 0;
  }
  return is_passed_on;
}

}  // namespace clew::engine
