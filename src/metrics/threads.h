// SPDX-License-Identifier: Apache-2.0
// Threads beside the one that is a command: signals are for that one.
#pragma once

#include <csignal>

namespace clew::metrics {

// While it is there, threads that begin take no signals.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace clew::metrics
